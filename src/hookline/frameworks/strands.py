"""Hookline inside Strands agents: `Agent(model=…, tools=[…], hooks=[HooklineProvider(hooks)])`."""

import sys
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, HookClient, PendingCalls

require("strands")

from strands import hooks as strands_hooks
from strands.hooks.registry import HookOrder

_FINISHED = ("end_turn", "stop_sequence", "tool_use")  # the last: with a tool's result, or with structured output


class HooklineProvider(strands_hooks.HookProvider):
    """Sends a Strands agent's prompts, tool calls and endings through `hooks`.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    The session is the agent's session manager's, else one for as long as the `Agent` object lives.
    """

    def __init__(self, hooks: Fires, *, on_ask: OnAsk | None = None) -> None:
        self._asking = HookClient(hooks, on_ask)
        self._sessions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._runs: WeakKeyDictionary[Any, AgentRun] = WeakKeyDictionary()
        self._calls = PendingCalls()

    def register_hooks(self, registry: strands_hooks.HookRegistry, **kwargs: Any) -> None:
        """Last before a tool is called and first after it, so that hooks judge what really runs."""
        registry.add_callback(strands_hooks.BeforeInvocationEvent, self._before_invocation)
        registry.add_callback(strands_hooks.AfterInvocationEvent, self._after_invocation)
        registry.add_callback(strands_hooks.BeforeToolCallEvent, self._before_tool, order=HookOrder.SDK_LAST)
        registry.add_callback(strands_hooks.AfterToolCallEvent, self._after_tool, order=HookOrder.SDK_FIRST)
        registry.add_callback(strands_hooks.AfterToolsEvent, self._after_tools)

    async def _before_invocation(self, event: strands_hooks.BeforeInvocationEvent) -> None:
        if event.agent in self._runs:
            return  # a hook sent the agent back to work: the run goes on
        run = self._runs[event.agent] = self._new_run(event.agent)
        texts = [[block["text"] for block in one["content"] if "text" in block] for one in event.messages or ()]
        if not await run.begin("\n".join(map("\n".join, texts)), resumed=bool(event.agent.messages)):
            event.cancel = run.stopped or True
            return
        notes = run.pop_notes()
        if notes:
            *earlier, last = event.messages or [{"role": "user", "content": []}]
            event.messages = [*earlier, {**last, "content": [*last["content"], {"text": notes}]}]

    def _new_run(self, agent: Any) -> AgentRun:
        manager = getattr(agent, "_session_manager", None)
        session = getattr(manager, "session_id", None) or self._sessions.setdefault(agent, str(uuid4()))
        return self._asking.new_run(session_id=session, agent=agent.name)

    async def _after_invocation(self, event: strands_hooks.AfterInvocationEvent) -> None:
        run = self._runs.get(event.agent)
        if run is None:
            return
        if event.result is not None and event.result.stop_reason in _FINISHED:
            feedback = await run.finish(str(event.result).strip())
            if feedback is not None:
                event.resume = feedback
                return
        del self._runs[event.agent]
        await run.end(sys.exception() if event.result is None and not run.refused else None)

    async def _before_tool(self, event: strands_hooks.BeforeToolCallEvent) -> None:
        use = event.tool_use
        run = self._runs.get(event.agent) or self._new_run(event.agent)  # a direct call: `agent.tool.shell(…)`
        arguments = use["input"] if isinstance(use["input"], dict) else {"input": use["input"]}
        call = await run.judge(use["name"], arguments, use["toolUseId"])
        if call.refused is not None:
            event.cancel_tool = call.refused
            return
        if call.rewritten:
            use = event.tool_use = {**use, "input": call.arguments}
        self._calls.enter(use, call)

    async def _after_tool(self, event: strands_hooks.AfterToolCallEvent) -> None:
        call, result = self._calls.leave(event.tool_use), event.result
        if call is None:
            return
        content = result["content"]
        if event.exception is not None or result["status"] == "error":
            said = await call.failed(steps.text_of(_output(content)))
        else:
            said = await call.succeeded(content, _output)
        if said.changes:
            body = [{"text": steps.text_of(said.output)}] if said.replaces else content
            event.result = {**result, "content": [*body, *({"text": note} for note in said.notes)]}

    async def _after_tools(self, event: strands_hooks.AfterToolsEvent) -> None:
        run = self._runs.get(event.agent)
        if run is not None and run.stopped is not None:
            event.end_turn = run.stopped


def _output(content: Any) -> Any:
    """What the tool returned: a single text as text, a single value as that value, else the blocks."""
    if len(content) != 1:
        return content
    [block] = content
    return block.get("text", block.get("json", content))
