"""Calls of a loop of your own: a tool call as a model's API returns it, judged before you run it.

    call = judge(hooks, block)
    text = call.refused or call.finish(run(call.name, call.arguments))

`judge` does not wait for anything but the hooks; in an async loop write `await ajudge(…)` and `await call.afinish(…)`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.frameworks.steps import HookClient, SyncHookClient, ToolCall, done, field_of


def judge(hooks: Fires, call: Any, *, session_id: str | None = None, on_ask: OnAsk | None = None) -> ToolCall:
    """Ask the hooks about a call: a `tool_use` block of Anthropic's, a tool call of OpenAI's, or a mapping like one."""
    return done(_judged(SyncHookClient(hooks, on_ask), session_id, call))


async def ajudge(hooks: Fires, call: Any, *, session_id: str | None = None, on_ask: OnAsk | None = None) -> ToolCall:
    """`judge`, for an async loop."""
    return await _judged(HookClient(hooks, on_ask), session_id, call)


async def _judged(client: HookClient, session_id: str | None, call: Any) -> ToolCall:
    run = client.new_run(session_id=session_id)
    function = field_of(call, "function") or field_of(call, "custom") or call
    name = str(field_of(function, "name") or "")
    given: Any = next((value for key in ("input", "arguments") if (value := field_of(function, key)) is not None), {})
    id_ = str(field_of(call, "call_id") or field_of(call, "id") or "")
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except msgspec.DecodeError:
            given = {"input": given}  # a custom tool takes a text
    if not name or not isinstance(given, Mapping):
        return ToolCall(run, name, {}, id_, f"`{name}` was denied: a call has a name, and an object of arguments")
    return await run.judge(name, given, id_)
