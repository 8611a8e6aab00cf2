"""Tool calls judged: whether one may be made and with what, and what the client gets of its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import msgspec

from hookline.events import PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse
from hookline.events.frozen import thaw
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.messages import Id, Message
from hookline.hosts.gateway.pins import Pins
from hookline.hosts.gateway.questions import (
    Judge,
    PersonalApprovals,
    ServerQuestions,
    call_identity,
    can_ask,
    question,
    says_yes,
)
from hookline.hosts.host import mcp_name
from hookline.hosts.judged_calls import take
from hookline.replies import NOTHING, Decision, Reply

_BUSY = ("working", "submitted", "input_required")


class ServerCall(msgspec.Struct, eq=False):
    """A tool call under way: as the client made it, and as it was let through."""

    id: Id
    params: dict[str, Any]
    tool: str
    arguments: dict[str, Any]
    judged: dict[str, Any]
    notes: tuple[str, ...] = ()
    approved: bool = False
    by_host: bool = False
    """Whether the host's own hook has judged it."""
    started: float = 0.0

    @property
    def identity(self) -> str:
        """What an approval of this call is bound to."""
        return call_identity(self.tool, self.arguments, self.judged)


class HostNotes(msgspec.Struct, frozen=True):
    """The host in front of the client, whose own hook asks the same hooks: what it has judged is not judged again."""

    name: str
    source: tuple[str, ...]
    sees_results: bool
    """Whether its hook can replace a result."""

    def take(self, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether its hook has judged this call."""
        return take(self.name, self.source, tool, arguments)


class CallJudge:
    """Judges the calls of one server; `elicit` asks the person in the older era, `people` where the client cannot."""

    def __init__(
        self,
        judge: Judge,
        server: str,
        pins: Pins,
        questions: ServerQuestions,
        elicit: Callable[[dict[str, Any], float], Awaitable[Message]],
        *,
        people: Callable[[dict[str, Any], Reply], Awaitable[Reply | None]],
        ask_seconds: float,
        host: HostNotes | None = None,
    ) -> None:
        self._host = host
        self._judge, self._name, self._pins, self._questions, self._elicit = judge, server, pins, questions, elicit
        self._people = people
        self._approvals = PersonalApprovals(ask_seconds)
        self._tasks: dict[str, ServerCall] = {}
        self.declared: dict[str, Any] = {}

    def task(self, id: Any) -> ServerCall | None:
        """The call whose result a task will have."""
        return self._tasks.get(id) if isinstance(id, str) else None

    def _about(self, call: ServerCall) -> dict[str, Any]:
        """What a record of the call says besides: the server, and which definition of the tool it was."""
        return {"mcp": {"server": self._name, "tool": self._pins.digest(call.tool)}}

    async def admit(self, call: ServerCall) -> ServerCall | str | dict[str, Any]:
        """The call as it may be made; else why not, or the result that asks the person first."""
        if (problem := self._pins.problem(call.tool)) is not None:
            self._pins.refuse(call.tool)
            return f"`{call.tool}` was denied: {problem}"
        state, said, call.params = self._approvals.resume(call.params)
        if (objection := await self._questions.judge_answers(call.params)) is not None:
            return f"`{call.tool}` was denied: {objection}"
        event = {"tool_name": mcp_name(self._name, call.tool), "tool_input": call.arguments, "extra": self._about(call)}
        call.by_host = self._host is not None and self._host.take(call.tool, call.arguments)
        reply = NOTHING if call.by_host else await self._judge(PreToolUse, **event, tool_use_id=str(call.id))
        if reply.decision in (Decision.DENY, Decision.DEFER):
            return "\n\n".join((f"`{call.tool}` was denied: {reply.reason or 'a hook denied it'}", *reply.context))
        if reply.input is not None:
            call.judged = thaw(reply.input)
            if problems := wire.misfits(call.judged, self._pins.schema(call.tool, "inputSchema") or {}):
                return f"`{call.tool}` was denied: a hook's rewrite does not fit the tool: {'; '.join(problems)}"
        call.notes = reply.context
        if reply.decision is Decision.ASK:
            outcome = await self._ask(
                call, event, reply, approved=self._approvals.is_approved(state, said, call.identity)
            )
            if outcome is not None:
                return outcome
            call.approved = True
        call.started = perf_counter()
        return call

    async def _ask(
        self, call: ServerCall, event: dict[str, Any], reply: Reply, *, approved: bool | None
    ) -> str | dict[str, Any] | None:
        """Why an `ask` is refused, or the result that asks; `None` if it is approved."""
        why = reply.reason or "a hook wants an approval"
        if approved is None:
            permission = await self._judge(PermissionRequest, **{**event, "tool_input": call.judged})
            if permission.decision is not Decision.PASS:
                approved = permission.decision is Decision.ALLOW and permission.input is None
                why = permission.reason or why
        if approved is None:
            if not can_ask(call.params, self.declared):
                said = await self._people({**event, "tool_input": call.judged}, reply)
                if said is None:
                    return f"`{call.tool}` needs approval, and this client has no way to ask a person: {why}"
                return None if said.decision is Decision.ALLOW else f"`{call.tool}` was not approved: {said.reason}"
            asked = question(mcp_name(self._name, call.tool), call.judged, why)
            if wire.is_stateless(call.params):
                return self._approvals.ask(asked, call.identity, call.params.get("requestState"))
            found = await self._elicit(asked, self._approvals.seconds)
            approved = says_yes(found.get("result"))
        return None if approved else f"`{call.tool}` was not approved: {why}"

    async def pass_questions(
        self, id: Id, call: ServerCall | None, params: dict[str, Any], value: dict[str, Any]
    ) -> Message:
        """A result by which the server asks for input, if hooks allow it; an approved call stays approved."""
        objection = await self._questions.judge_requests(value)
        if objection is not None:
            return (
                wire.error(id, wire.INVALID_REQUEST, objection)
                if call is None
                else wire.refused_call(id, params, objection)
            )
        return wire.result(id, self._approvals.keep(value, call.identity) if call and call.approved else value)

    async def judge_result(self, id: Id, call: ServerCall, message: Message) -> Message:
        """What the client gets of a call's answer."""
        value = message.get("result")
        if isinstance(value, dict) and self._is_task(call, value):
            return message
        event = {
            "tool_name": mcp_name(self._name, call.tool), "tool_input": call.judged, "tool_use_id": str(call.id),
            "extra": self._about(call),
            "duration_ms": (perf_counter() - call.started) * 1000,
        }  # fmt: skip
        if not isinstance(value, dict):
            failure = message.get("error")
            text = str(failure.get("message")) if isinstance(failure, dict) else "the server gave no result"
            await self._judge(PostToolUseFailure, **event, error=text)
            return message if isinstance(failure, dict) else wire.error(id, wire.INTERNAL_ERROR, text)
        value = wire.strip_result(value)
        if call.by_host and self._host is not None and self._host.sees_results:
            return {**message, "result": wire.add_notes(value, call.notes)}
        if value.get("isError"):
            reply = await self._judge(PostToolUseFailure, **event, error=wire.text_of(value))
        else:
            reply = await self._judge(PostToolUse, **event, tool_response=value)
        return {**message, "result": self._judged_result(call, value, reply)}

    def _judged_result(self, call: ServerCall, value: dict[str, Any], reply: Reply) -> dict[str, Any]:
        if reply.output is not msgspec.UNSET:
            value = wire.replace_result(value, thaw(reply.output), self._pins.schema(call.tool, "outputSchema"))
        objections = reply.reasons if reply.decision is Decision.DENY else ()
        stops = (f"a hook stops the agent: {reply.stop_reason or ''}",) if reply.stop else ()
        return wire.add_notes(value, (*call.notes, *objections, *stops, *reply.context))

    def _is_task(self, call: ServerCall, value: dict[str, Any]) -> bool:
        """Whether the result is still to come; it is judged when the client fetches it."""
        if isinstance(task := value.get("task", value if value.get("resultType") == "task" else None), dict):
            self._tasks[str(task.get("taskId"))] = call
            return "content" not in value
        return value.get("status") in _BUSY and "content" not in value
