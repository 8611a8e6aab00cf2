"""What hooks decide: whether a call may be made and with what, what the client gets of its result, who asks whom.

A hook's `ask` is put in the way of the client's protocol era. Until 2025-11-25 the question is a request to the
client. Since 2026-07-28 it is a result that asks for input, and the client makes the same call again with the answer
and a state, which fits that very call, once, and not for long. A no is final.
"""

import hashlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hookline import events
from hookline.core.engine import Verdict
from hookline.core.engine.composition import answer_seconds
from hookline.core.engine.engine import FiresAsync, ask_people
from hookline.display import block, one_line
from hookline.events.base import thaw
from hookline.hosts.answer import fails_closed, refusal, reply_for, within_rules
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.messages import Id, Message
from hookline.hosts.gateway.pins import Pins, Send
from hookline.hosts.host import mcp_name
from hookline.hosts.judged_calls import take
from hookline.replies import NOTHING, Decision, Reply, deny

log: logging.Logger = logging.getLogger("hookline.mcp")
_KEY = "hookline"
_SERVER_SECONDS = 600.0
_MOST_SHOWN = 2_000
_MOST_QUESTIONS = 30  # how often a server may ask something between two requests of the client
_ELICIT, _SAMPLE = "elicitation/create", "sampling/createMessage"
_BUSY = ("working", "submitted", "input_required")


class Judge:
    """Sends events of one session through the hooks."""

    def __init__(self, hooks: FiresAsync, server: str, ask_seconds: float) -> None:
        self._hooks = hooks
        self.server: str = server
        self.ask_seconds: float = ask_seconds
        self._who: dict[str, Any] = {"session_id": f"mcp-{server}-{os.urandom(6).hex()}", "cwd": str(Path.cwd())}

    async def __call__(self, kind: type[events.Event], /, **fields: Any) -> Reply:
        """The hooks' reply; what cannot be judged is denied, and where nothing can be prevented any more it raises."""
        event = kind(**self._who, **fields)
        try:
            return within_rules(reply_for(await self._hooks.fire(event)), event)
        except (Exception, SystemExit) as problem:
            if not fails_closed(event):
                raise
            log.warning("hooks on %s could not be asked: %s", kind.event_name, problem)
            return deny(refusal(problem, event))

    async def ask_people(self, fields: dict[str, Any], reply: Reply) -> Reply | None:
        """The answer of a person who is asked elsewhere; `None` if there is no one."""
        event = events.PreToolUse(**self._who, **fields)
        seconds = answer_seconds.set(self.ask_seconds)
        try:
            verdict = Verdict(event, reply, chosen=getattr(self._hooks, "hooks", ()), known=())
            said = await ask_people(self._hooks, verdict)
        finally:
            answer_seconds.reset(seconds)
        return said if isinstance(said, Reply) else None

    async def tell(self, kind: type[events.SessionStart | events.SessionEnd]) -> None:
        """Let the hooks know that the session begins or ends; one that fails then holds up nothing."""
        try:
            await self(kind)
        except Exception as problem:  # noqa: BLE001 - whatever it was, nothing is let through by it
            log.warning("hooks on %s could not be asked: %s", kind.event_name, problem)


class ServerQuestions:
    """What a server asks of the user (elicitation) or of the client's model (sampling): events, as are the answers.

    `start` takes what has to wait for hooks.
    """

    def __init__(
        self, judge: Judge, to_client: Send, to_server: Send, start: Callable[[Coroutine[Any, Any, None]], object]
    ) -> None:
        self._judge, self._to_client, self._to_server, self._start = judge, to_client, to_server, start
        self._waiting: dict[Id, Message] = {}
        self.in_a_row: int = 0  # how often the server has asked since the client's last request

    async def asked(self, id: Id, message: Message) -> None:
        if id in self._waiting:
            await self._to_server(wire.error(id, wire.INVALID_REQUEST, f"a request with the id `{id}` is under way"))
        elif message["method"] not in (_ELICIT, _SAMPLE):
            self._waiting[id] = message
            await self._to_client(message)
        elif self.in_a_row >= _MOST_QUESTIONS:
            await self._to_server(wire.error(id, wire.REFUSED, f"more than {_MOST_QUESTIONS} questions in a row"))
        else:
            self.in_a_row += 1
            self._waiting[id] = message
            self._start(self._ask(id, message))

    async def _ask(self, id: Id, message: Message) -> None:
        outcome = await self._judge_request(message)
        if outcome is None:
            await self._to_client(message)
        else:
            del self._waiting[id]
            await self._to_server(_answer_to(id, outcome))

    def answered(self, id: Id | None, message: Message) -> bool:
        """Take an answer of the client's, if the server asked for it."""
        asked = None if id is None else self._waiting.pop(id, None)
        if id is not None and asked is not None:
            self._start(self._answer(id, asked["method"], message))
        return asked is not None

    async def _answer(self, id: Id, method: str, message: Message) -> None:
        value = message.get("result")
        outcome = await self._judge_answer(method, value) if isinstance(value, dict) else None
        await self._to_server(message if outcome is None else _answer_to(id, outcome))

    async def judge_requests(self, value: Mapping[str, Any]) -> str | None:
        """Why the questions in a result must not be put to the client."""
        asked = value.get("inputRequests")
        for one in asked.values() if isinstance(asked, dict) else ():
            if not isinstance(one, dict) or await self._judge_request(one) is not None:
                return "a hook refused what the server asks for"
        return None

    async def judge_answers(self, params: Mapping[str, Any]) -> str | None:
        """Why the answers in a call that comes back must not be given to the server."""
        given = params.get("inputResponses")
        for one in given.values() if isinstance(given, dict) else ():
            method = _ELICIT if isinstance(one, dict) and "action" in one else _SAMPLE
            if not isinstance(one, dict) or await self._judge_answer(method, one) is not None:
                return "a hook refused an answer to the server"
        return None

    async def _judge_request(self, message: Message) -> dict[str, Any] | str | None:
        """What to answer the server with, a refusal as a text; `None` if the client is to be asked."""
        params = wire.params_of(message)
        if message.get("method") == _ELICIT:
            reply = await self._judge(
                events.Elicitation, mcp_server_name=self._judge.server, message=str(params.get("message") or ""),
                mode=str(params.get("mode") or "form"), url=params.get("url"),
                requested_schema=params.get("requestedSchema"),
            )  # fmt: skip
            return _in_users_place(reply)
        if message.get("method") == _SAMPLE:
            asked = params.get("messages") or []
            reply = await self._judge(events.PreModelCall, model=self._judge.server, messages=asked)
            return reply.reason or "denied" if reply.decision is Decision.DENY else None
        return None

    async def _judge_answer(self, method: str, value: dict[str, Any]) -> dict[str, Any] | str | None:
        """What the server gets instead of the client's answer; `None` if that is to stay."""
        if method == _ELICIT:
            given = {"action": str(value.get("action") or "cancel"), "content": value.get("content")}
            reply = await self._judge(events.ElicitationResult, mcp_server_name=self._judge.server, **given)
            return _in_users_place(reply)
        if method == _SAMPLE:
            content = value.get("content")
            text = str(content.get("text", "")) if isinstance(content, dict) else msgspec.json.encode(content).decode()
            reply = await self._judge(events.PostModelCall, model=str(value.get("model", "")), text=text)
            if reply.decision is Decision.DENY:
                return reply.reason or "denied"
            if reply.output is not msgspec.UNSET:
                return {**value, "content": {"type": "text", "text": str(reply.output)}}
        return None


def _in_users_place(reply: Reply) -> dict[str, Any] | None:
    """What hooks answer to an elicitation."""
    if reply.decision is Decision.DENY:
        return {"action": "decline"}
    more = reply.specific
    if more is None or more.action is None:
        return None
    return {"action": more.action} | ({} if more.content is None else {"content": more.content})


def _answer_to(id: Id, outcome: dict[str, Any] | str) -> Message:
    return wire.error(id, wire.REFUSED, outcome) if isinstance(outcome, str) else wire.result(id, outcome)


class OpenQuestion(msgspec.Struct):
    """What was asked: about which call, until when, the server's own state, and whether a person said yes already."""

    call: str
    until: float
    server: Any = None
    approved: bool = False
    is_used: bool = False


def question(tool: str, arguments: Mapping[str, Any], why: str) -> dict[str, Any]:
    """What the person is shown: what would run, and why it is asked about."""
    call = one_line(f"{tool} {msgspec.json.encode(arguments).decode()}", _MOST_SHOWN)
    approve = {"type": "boolean", "title": "Let it run", "default": False}
    schema = {"type": "object", "properties": {"approve": approve}, "required": ["approve"]}
    return {"message": f"{call}\n{block(why)}", "requestedSchema": schema}


def says_yes(answer: Any) -> bool:
    """Whether an elicitation was answered with a clear yes."""
    content = answer.get("content") if isinstance(answer, dict) and answer.get("action") == "accept" else None
    return isinstance(content, dict) and content.get("approve") is True


def _is_approved(asked: OpenQuestion | None, answer: Any, call: str) -> bool | None:
    """Whether a person approved this call; `None` if no one was asked."""
    if asked is None:
        return None
    fits = not asked.is_used and asked.call == call and asked.until > time.time()
    asked.is_used = True
    return fits and (asked.approved or says_yes(answer))


def can_ask(params: Mapping[str, Any], declared: Mapping[str, Any]) -> bool:
    """Whether the client declared elicitation by form: in this request, or when it initialized."""
    found = wire.meta_of(params).get(wire.CAPABILITIES) if wire.is_stateless(params) else declared
    ways = found.get("elicitation") if isinstance(found, dict) else None
    return isinstance(ways, dict) and (not ways or "form" in ways)


class ServerCall(msgspec.Struct, eq=False):
    """A tool call under way: as the client made it, and as it was let through."""

    id: Id
    params: dict[str, Any]
    tool: str
    arguments: dict[str, Any]
    judged: dict[str, Any]
    notes: tuple[str, ...] = ()
    approved: bool = False
    by_host: bool = False  # whether the host's own hook has judged it
    started: float = 0.0

    @property
    def identity(self) -> str:
        """What an approval is for: the tool, what it was called with, and what would run."""
        return hashlib.sha256(msgspec.json.encode([self.tool, self.arguments, self.judged], order="sorted")).hexdigest()


class HostNotes(msgspec.Struct, frozen=True):
    """The host in front of the client, whose own hook asks the same hooks: what it has judged is not judged again."""

    name: str
    source: tuple[str, ...]
    sees_results: bool  # whether its hook can replace a result


class CallJudge:
    """Judges the calls of one server; `elicit` asks the person in the older era."""

    def __init__(
        self, judge: Judge, pins: Pins, questions: ServerQuestions,
        elicit: Callable[[dict[str, Any], float], Awaitable[Message]], host: HostNotes | None,
    ) -> None:  # fmt: skip
        self._judge, self._pins, self._questions, self._elicit, self._host = judge, pins, questions, elicit, host
        self._asked: dict[str, OpenQuestion] = {}  # by the state that the client sends back with an answer
        self.tasks: dict[Any, ServerCall] = {}  # the calls whose result a task will have, by its id
        self.declared: dict[str, Any] = {}

    def _resume(self, params: dict[str, Any]) -> tuple[OpenQuestion | None, Any, dict[str, Any]]:
        """Our question in a call that comes back, the answer to it, and the call as the server should see it."""
        asked = self._asked.get(str(params.get("requestState")))
        if asked is None:  # it is the server's own state, or forged
            return None, None, params
        answers = dict(params.get("inputResponses") or {})
        answer = answers.pop(_KEY, None)
        rest = {key: value for key, value in params.items() if key not in ("requestState", "inputResponses")}
        if asked.server is not None:
            rest["requestState"] = asked.server
        return asked, answer, {**rest, "inputResponses": answers} if answers else rest

    def _state_for(self, call: str, seconds: float, server: Any, *, approved: bool = False) -> str:
        """A state that fits this call, once, for so long; those that were out of date an hour ago are forgotten."""
        now, state = time.time(), os.urandom(16).hex()
        self._asked = {key: one for key, one in self._asked.items() if one.until > now - 3600}
        self._asked[state] = OpenQuestion(call, now + seconds, server, approved)
        return state

    def _about(self, call: ServerCall, given: dict[str, Any]) -> dict[str, Any]:
        """What events say of a call; a record says besides which definition of the tool it was."""
        server = self._judge.server
        about = {"mcp": {"server": server, "tool": self._pins.digest(call.tool)}}
        return {"tool_name": mcp_name(server, call.tool), "tool_input": given, "extra": about}

    async def admit(self, call: ServerCall) -> str | dict[str, Any] | None:
        """`None` if the call may be made, as it is then; else why not, or the result that asks the person first."""
        if (problem := self._pins.problem(call.tool)) is not None:
            self._pins.refuse(call.tool)
            return f"`{call.tool}` was denied: {problem}"
        state, said, call.params = self._resume(call.params)
        if (objection := await self._questions.judge_answers(call.params)) is not None:
            return f"`{call.tool}` was denied: {objection}"
        host, event = self._host, self._about(call, call.arguments)
        call.by_host = host is not None and take(host.name, host.source, call.tool, call.arguments)
        reply = NOTHING if call.by_host else await self._judge(events.PreToolUse, **event, tool_use_id=str(call.id))
        if reply.decision in (Decision.DENY, Decision.DEFER):
            return "\n\n".join((f"`{call.tool}` was denied: {reply.reason or 'a hook denied it'}", *reply.context))
        if reply.input is not None:
            call.judged = thaw(reply.input)
            if problems := wire.misfits(call.judged, self._pins.schema(call.tool, "inputSchema") or {}):
                return f"`{call.tool}` was denied: a hook's rewrite does not fit the tool: {'; '.join(problems)}"
        call.notes = reply.context
        if reply.decision is Decision.ASK:
            approved = _is_approved(state, said, call.identity)
            outcome = await self._ask(call, {**event, "tool_input": call.judged}, reply, approved=approved)
            if outcome is not None:
                return outcome
            call.approved = True
        call.started = time.perf_counter()
        return None

    async def _ask(
        self, call: ServerCall, event: dict[str, Any], reply: Reply, *, approved: bool | None
    ) -> str | dict[str, Any] | None:
        """Why an `ask` is refused, or the result that asks; `None` if it is approved."""
        why = reply.reason or "a hook wants an approval"
        if approved is None:
            permission = await self._judge(events.PermissionRequest, **event)
            if permission.decision is not Decision.PASS:
                approved = permission.decision is Decision.ALLOW and permission.input is None
                why = permission.reason or why
        if approved is None:
            if not can_ask(call.params, self.declared):
                said = await self._judge.ask_people(event, reply)
                if said is None:
                    return f"`{call.tool}` needs approval, and this client has no way to ask a person: {why}"
                return None if said.decision is Decision.ALLOW else f"`{call.tool}` was not approved: {said.reason}"
            asked = question(event["tool_name"], call.judged, why)
            if wire.is_stateless(call.params):
                state = self._state_for(call.identity, self._judge.ask_seconds, call.params.get("requestState"))
                request = {_KEY: {"method": _ELICIT, "params": {"mode": "form", **asked}}}
                return {"resultType": "input_required", "inputRequests": request, "requestState": state}
            approved = says_yes((await self._elicit(asked, self._judge.ask_seconds)).get("result"))
        return None if approved else f"`{call.tool}` was not approved: {why}"

    async def pass_questions(
        self, id: Id, call: ServerCall | None, params: dict[str, Any], value: dict[str, Any]
    ) -> Message:
        """A result by which the server asks for input, if hooks allow it; an approved call stays approved."""
        objection = await self._questions.judge_requests(value)
        if objection is not None:
            return wire.refused(id, params, objection, is_call=call is not None, code=wire.INVALID_REQUEST)
        if call and call.approved:
            state = self._state_for(call.identity, _SERVER_SECONDS, value.get("requestState"), approved=True)
            value = {**value, "requestState": state}
        return wire.result(id, value)

    async def judge_result(self, id: Id, call: ServerCall, message: Message) -> Message:
        """What the client gets of a call's answer."""
        value = message.get("result")
        if isinstance(value, dict) and self._is_task(call, value):
            return message
        took = (time.perf_counter() - call.started) * 1000
        event = {**self._about(call, call.judged), "tool_use_id": str(call.id), "duration_ms": took}
        if not isinstance(value, dict):
            failure = message.get("error")
            text = str(failure.get("message")) if isinstance(failure, dict) else "the server gave no result"
            await self._judge(events.PostToolUseFailure, **event, error=text)
            return message if isinstance(failure, dict) else wire.error(id, wire.INTERNAL_ERROR, text)
        value = wire.strip_result(value)
        if call.by_host and self._host is not None and self._host.sees_results:
            return {**message, "result": wire.add_notes(value, call.notes)}
        if value.get("isError"):
            text = "\n".join(str(part["text"]) for part in value.get("content") or () if "text" in part)
            reply = await self._judge(events.PostToolUseFailure, **event, error=text)
        else:
            reply = await self._judge(events.PostToolUse, **event, tool_response=value)
        if reply.output is not msgspec.UNSET:
            value = wire.replace_result(value, thaw(reply.output), self._pins.schema(call.tool, "outputSchema"))
        objections = reply.reasons if reply.decision is Decision.DENY else ()
        stops = (f"a hook stops the agent: {reply.stop_reason or ''}",) if reply.stop else ()
        return {**message, "result": wire.add_notes(value, (*call.notes, *objections, *stops, *reply.context))}

    def _is_task(self, call: ServerCall, value: dict[str, Any]) -> bool:
        """Whether the result is still to come; it is judged when the client fetches it."""
        if isinstance(task := value.get("task", value if value.get("resultType") == "task" else None), dict):
            self.tasks[str(task.get("taskId"))] = call
            return "content" not in value
        return value.get("status") in _BUSY and "content" not in value
