"""AGENT-HOOKS-0.1, in both directions.

`HooklineInterceptor(hooks)` puts Hookline's hooks into any host of AGENT-HOOKS; `Interceptions(emitter)` lets
Hookline's agent be such a host, whose interceptors, composition profile, approval resolver, identity provider and mode
(`enforce` or `evaluate_only`) are the emitter's.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from operator import getitem
from types import MappingProxyType
from typing import Any, NamedTuple

from hookline import events
from hookline.core.engine import Verdict
from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.core.hooks.declare import make_hook
from hookline.core.hooks.hook import Hook
from hookline.frameworks import require, steps
from hookline.frameworks.steps import HookClient
from hookline.replies import NOTHING, Decision, Reply, deny, replace_output, rewrite

require("agent-hooks")

from agent_hooks import AgentContextBuilder, InterceptionEmitter

_TIMEOUT = 600.0  # seconds for a whole emission; the emitter has limits of its own for interceptors and resolver
_FINISH = MappingProxyType({"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"})


class HooklineInterceptor:
    """An interceptor that asks `hooks`: `emitter.register(HooklineInterceptor(hooks))`.

    A deny is a deny; `ask` is a deny that the host's approval resolver may lift (or `on_ask`, if given); a rewritten
    input or replaced output is a transform; context and messages are warnings on the record.
    """

    def __init__(self, hooks: Fires, *, on_ask: OnAsk | None = None) -> None:
        self._asking = HookClient(hooks, on_ask)

    async def intercept(self, context: Any) -> dict[str, Any]:
        """The verdict of all hooks on one interception, in the wire form."""
        verdict = await self._asking.fire(_EVENTS[context["interception_point"]](context))
        if verdict.decision is Decision.ASK and self._asking.on_ask is not None:
            answer = await self._asking.ask(verdict)
            allowed = answer.decision is Decision.ALLOW if isinstance(answer, Reply) else answer is True
            return _wire(verdict, approved=allowed)
        return _wire(verdict)


def _wire(verdict: Verdict, *, approved: bool | None = None) -> dict[str, Any]:
    warnings = [{"reason": "hookline:context", "message": text} for text in (*verdict.context, *verdict.messages)]
    noted: dict[str, Any] = {"warnings": warnings} if warnings else {}
    asks = verdict.decision in (Decision.ASK, Decision.DEFER)
    if verdict.blocked or verdict.keep_going or (asks and not approved):
        liftable: dict[str, Any] = {"approval": {}} if asks and approved is None and not verdict.blocked else {}
        code, message = f"hookline:{verdict.decided_by or 'hooks'}", verdict.reason or "denied by a hook"
        return {"decision": "deny", "reason": code, "message": message, **liftable, **noted}
    changed, output = verdict.reply.input, verdict.reply.output
    if changed is None and output == NOTHING.output:
        return {"decision": "allow", **noted}
    is_whole = changed is not None or isinstance(verdict.event, events.PostToolUse)
    value = steps.plain(output if changed is None else changed)
    change = {"path": "$target" if is_whole else "$target.content", "value": value}
    return {"decision": "transform", "transform": change, **noted}


def _who(context: Any) -> dict[str, Any]:
    return {"session_id": context["session"]["id"], "agent_type": context["agent"].get("name")}


def _call(context: Any) -> dict[str, Any]:
    call = context["tool_call"]
    return {**_who(context), "tool_name": call["name"], "tool_input": call["args"], "tool_use_id": call["id"]}


def _post_model(context: Any) -> events.Event:
    response = context["response"]
    return events.PostModelCall(
        **_who(context), model=context["model"]["id"], text=steps.text_of(response["content"]),
        tool_calls=response["tool_calls"], stop_reason=response["finish_reason"],
    )  # fmt: skip


def _post_tool(context: Any) -> events.Event:
    result = context["tool_result"]
    if result.get("is_error"):
        return events.PostToolUseFailure(**_call(context), error=steps.text_of(result["value"]))
    return events.PostToolUse(**_call(context), tool_response=result["value"], duration_ms=result.get("duration_ms"))


_EVENTS: dict[str, Callable[[Any], events.Event]] = {  # what each interception point is as an event of ours
    "agent_startup": lambda context: events.SessionStart(**_who(context)),
    "input": lambda context: events.UserPromptSubmit(
        **_who(context), prompt=steps.text_of(context["input"]["content"])
    ),
    "pre_model_call": lambda context: events.PreModelCall(
        **_who(context), model=context["model"]["id"], messages=context["messages"]
    ),
    "post_model_call": _post_model,
    "pre_tool_call": lambda context: events.PreToolUse(**_call(context)),
    "post_tool_call": _post_tool,
    "output": lambda context: events.PreOutput(**_who(context), text=steps.text_of(context["output"]["content"])),
    "agent_shutdown": lambda context: events.SessionEnd(**_who(context), reason="other"),
}


def _cannot_rewrite(what: str) -> Callable[[Any], Reply]:
    return lambda _: deny(f"an interceptor rewrites {what}, which cannot be done here")


def _of_answer(event: Any) -> dict[str, Any]:
    finish = _FINISH.get(event.stop_reason or "", event.stop_reason or "stop")
    answer = {"content": event.text or None, "tool_calls": steps.plain(event.tool_calls)}
    return {"model_id": event.model, **answer, "finish_reason": finish}


def _of_call(event: Any) -> dict[str, Any]:
    return {"call_id": event.tool_use_id, "name": event.tool_name, "args": steps.plain(event.tool_input)}


def _of_result(event: Any) -> dict[str, Any]:
    failed = isinstance(event, events.PostToolUseFailure)
    value = {"value": event.error, "is_error": True} if failed else {"value": steps.plain(event.tool_response)}
    return {**_of_call(event), "duration_ms": event.duration_ms, **value}


class _Point(NamedTuple):
    """Where an event is emitted: the builder's method and arguments, and what a change of a part of it means."""

    method: str
    arguments: Callable[[Any], dict[str, Any]]
    changes: Mapping[tuple[str, ...], Callable[[Any], Reply]] = MappingProxyType({})
    ends: bool = True  # whether the whole run ends if the step is denied


_POINTS: dict[type[events.Event], _Point] = {
    events.UserPromptSubmit: _Point(
        "input", lambda event: {"content": event.prompt}, {("input", "content"): _cannot_rewrite("the input")}
    ),
    events.PreModelCall: _Point(
        "pre_model_call", lambda event: {"model_id": event.model, "messages": steps.plain(event.messages)},
        {("messages",): _cannot_rewrite("the messages")},
    ),
    events.PostModelCall: _Point("post_model_call", _of_answer, {
        ("response", "tool_calls"): _cannot_rewrite("the model's tool calls"), ("response", "content"): replace_output,
    }),
    events.PreToolUse: _Point("pre_tool_call", _of_call, {("tool_call", "args"): rewrite}, ends=False),
    events.PostToolUse: _Point("post_tool_call", _of_result, {("tool_result", "value"): replace_output}, ends=False),
    events.PostToolUseFailure: _Point("post_tool_call", _of_result, ends=False),
    events.PreOutput: _Point("output", lambda event: {"content": event.text}, {("output", "content"): replace_output}),
}  # fmt: skip


class Interceptions:
    """Hooks that emit an agent's steps to interceptors: `hooks.add(Interceptions(emitter, tools=["Bash", "Read"]))`.

    They run after all others (priority -1000), so interceptors judge what other hooks have made of a call. One object
    serves one session.
    """

    def __init__(self, emitter: InterceptionEmitter, *, agent_id: str = "hookline", tools: Iterable[str] = ()) -> None:
        self.emitter = emitter
        self._agent_id = agent_id
        self._tools = sorted(tools)
        self._builder: Any = None
        self._blocked = False

    @property
    def hooks(self) -> list[Hook]:
        """One hook per interception point."""
        points: dict[type[events.Event], Any] = {events.SessionStart: self._start, **dict.fromkeys(_POINTS, self._step)}
        points[events.SessionEnd] = self._end
        last = partial(make_hook, priority=-1000, rejudge=False, timeout=_TIMEOUT)
        return [last([event], step, name=f"agent-hooks:{event.event_name}") for event, step in points.items()]

    async def _start(self, event: events.SessionStart) -> Reply | None:
        self._builder = AgentContextBuilder(
            agent_id=self._agent_id, framework="hookline", session_id=event.session_id, agent_name=event.agent_type
        )
        return await self._refusal(self._builder.agent_startup(tools_registered=self._tools), ends=True)

    async def _refusal(self, context: Any, *, ends: bool) -> Reply | None:
        """A deny if the step must not happen; `ends` if the whole run then ends."""
        record = await self.emitter.emit_unchecked(context)
        if record.proceeds:
            return None
        self._blocked = self._blocked or ends
        verdict = record.verdict
        return deny(" ".join(filter(None, (verdict.reason, verdict.message))) or "denied by an interceptor")

    async def _step(self, event: events.Event) -> Reply | None:
        point = _POINTS[type(event)]
        context = getattr(self._builder, point.method)(**point.arguments(event))
        before = {path: steps.plain(reduce(getitem, path, context)) for path in point.changes}
        refused = await self._refusal(context, ends=point.ends)
        if refused is not None:  # a denied result never reaches the model
            return replace_output(f"blocked: {refused.reason}") if isinstance(event, events.PostToolUse) else refused
        after = {path: reduce(getitem, path, context) for path in point.changes}
        return next((reply(after[path]) for path, reply in point.changes.items() if after[path] != before[path]), None)

    async def _end(self, event: events.SessionEnd) -> None:
        if self._builder is not None:
            reason = "error" if self._blocked else "completed"
            await self.emitter.emit_unchecked(self._builder.agent_shutdown(reason=reason))
