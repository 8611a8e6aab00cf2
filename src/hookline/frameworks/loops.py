"""Calls of a loop of your own: a tool call as a model's API returns it, judged before you run it.

    call = judge(hooks, block)
    text = call.refused or call.finish(run(call.name, call.arguments))

`judge` does not wait for anything but the hooks; in an async loop write `await ajudge(…)` and `await call.afinish(…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.frameworks.steps import AgentRun, CallResult, HookClient, SyncHookClient, ToolCall, done, succeeded
from hookline.frameworks.steps import failed as failed_step
from hookline.frameworks.steps import judge as judge_step


class JudgedCall:
    """A call that hooks have judged: `refused` is what the model reads in its place, else run it with `arguments`."""

    def __init__(self, call: ToolCall, run: AgentRun, client: HookClient) -> None:
        self._call, self._run, self._client = call, run, client
        self.name: str = call.name
        self.arguments: dict[str, Any] = call.arguments
        self.id: str = call.id
        self.refused: str | None = call.refused

    def finish(self, output: Any) -> str:
        """What the model is told of what the tool returned."""
        return done(succeeded(self._client, self._run, self._call, output)).text(output)

    def fail(self, error: BaseException | str) -> str:
        """What the model is told of what the tool raised."""
        return done(failed_step(self._client, self._run, self._call, error)).text(str(error))

    async def afinish(self, output: Any) -> str:
        """`finish`, for an async loop."""
        return (await self.result_of(output)).text(output)

    async def afail(self, error: BaseException | str) -> str:
        """`fail`, for an async loop."""
        return (await failed_step(self._client, self._run, self._call, error)).text(str(error))

    async def result_of(self, output: Any, *, failed: bool = False) -> CallResult:
        """What hooks make of a result, for a caller that has a form of its own for it."""
        step = failed_step if failed else succeeded
        return await step(self._client, self._run, self._call, output)


def judge(hooks: Fires, call: Any, *, session_id: str | None = None, on_ask: OnAsk | None = None) -> JudgedCall:
    """Ask the hooks about a call: a `tool_use` block of Anthropic's, a tool call of OpenAI's, or a mapping like one."""
    client = SyncHookClient(hooks, on_ask)
    run = client.new_run(session_id=session_id)
    return JudgedCall(done(_judged(client, run, call)), run, client)


async def ajudge(hooks: Fires, call: Any, *, session_id: str | None = None, on_ask: OnAsk | None = None) -> JudgedCall:
    """`judge`, for an async loop."""
    client = HookClient(hooks, on_ask)
    run = client.new_run(session_id=session_id)
    return JudgedCall(await _judged(client, run, call), run, client)


async def _judged(client: HookClient, run: AgentRun, call: Any) -> ToolCall:
    function = _field(call, "function") or _field(call, "custom") or call
    name = str(_field(function, "name") or "")
    given: Any = next((value for key in ("input", "arguments") if (value := _field(function, key)) is not None), {})
    id_ = str(_field(call, "call_id") or _field(call, "id") or "")
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except msgspec.DecodeError:
            given = {"input": given}  # a custom tool takes a text
    if not name or not isinstance(given, Mapping):
        return ToolCall(name, {}, id_, refused=f"`{name}` was denied: a call has a name, and an object of arguments")
    return await judge_step(client, run, name, given, id_)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
