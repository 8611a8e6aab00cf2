"""Questions: of hooks to the person (`ask`, by elicitation), and of the server to the person or to the model.

A hook's `ask` is put in the way of the client's protocol era. Until 2025-11-25 the question is a request to the
client. Since 2026-07-28 it is a result that asks for input, and the client makes the same call again with the answer:
what must be remembered meanwhile travels in a sealed state, which fits that very call, once, and not for long. A no is
final.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

import msgspec

from hookline.display import block, one_line
from hookline.events import Elicitation, ElicitationResult, Event, PostModelCall, PreModelCall
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.messages import Id, Message
from hookline.replies import Decision, Reply

_KEY = "hookline"
_SERVER_SECONDS = 600.0
_MOST_SHOWN = 2_000
_MOST_QUESTIONS = 30
"""How often a server may ask something between two requests of the client."""
_ELICIT, _SAMPLE = "elicitation/create", "sampling/createMessage"

Send = Callable[[Message], Awaitable[None]]


class Judge(Protocol):
    """Sends an event of this session through the hooks; a gate that cannot be judged is denied."""

    def __call__(self, kind: type[Event], /, **fields: Any) -> Awaitable[Reply]:
        """The reply to the event."""
        ...


class State(msgspec.Struct):
    """What is sealed: the call, until when it holds, the server's own state, and whether a person said yes already."""

    call: str
    until: float
    nonce: str
    server: Any = None
    approved: bool = False


class PersonalApprovals:
    """The questions of one gateway."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._secret = os.urandom(32)
        self._used: set[str] = set()

    def resume(self, params: dict[str, Any]) -> tuple[State | None, Any, dict[str, Any]]:
        """Our state in a call that comes back, the answer to our question, and the call as the server should see it."""
        state = self._open(params.get("requestState"))
        if state is None:
            return None, None, params
        answers = dict(params.get("inputResponses") or {})
        answer = answers.pop(_KEY, None)
        rest = {key: value for key, value in params.items() if key not in ("requestState", "inputResponses")}
        if state.server is not None:
            rest["requestState"] = state.server
        return state, answer, {**rest, "inputResponses": answers} if answers else rest

    def is_approved(self, state: State | None, answer: Any, call: str) -> bool | None:
        """Whether a person approved this call; `None` if no one was asked."""
        if state is None:
            return None
        is_fresh = state.nonce not in self._used
        self._used.add(state.nonce)
        fits = is_fresh and state.call == call and state.until > time.time()
        return fits and (state.approved or says_yes(answer))

    def ask(self, question: Mapping[str, Any], call: str, server_state: Any) -> dict[str, Any]:
        """The result that asks for input."""
        state = self._seal(State(call, time.time() + self.seconds, os.urandom(8).hex(), server_state))
        asked = {_KEY: {"method": "elicitation/create", "params": {"mode": "form", **question}}}
        return {"resultType": "input_required", "inputRequests": asked, "requestState": state}

    def keep(self, value: Mapping[str, Any], call: str) -> dict[str, Any]:
        """A result by which the server asks for input in an approved call: the approval holds when that comes back."""
        until = time.time() + _SERVER_SECONDS
        state = State(call, until, os.urandom(8).hex(), value.get("requestState"), approved=True)
        return {**value, "requestState": self._seal(state)}

    def _seal(self, state: State) -> str:
        body = msgspec.json.encode(state)
        return base64.urlsafe_b64encode(hmac.digest(self._secret, body, "sha256") + body).decode()

    def _open(self, text: Any) -> State | None:
        """Our own state; `None` if it is the server's, or forged."""
        try:
            data = base64.urlsafe_b64decode(text.encode())
        except (AttributeError, ValueError):
            return None
        seal, body = data[:32], data[32:]
        if not hmac.compare_digest(seal, hmac.digest(self._secret, body, "sha256")):
            return None
        return msgspec.json.decode(body, type=State)


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


def can_ask(params: Mapping[str, Any], declared: Mapping[str, Any]) -> bool:
    """Whether the client declared elicitation by form: in this request, or when it initialized."""
    found = wire.meta_of(params).get(wire.CAPABILITIES) if wire.is_stateless(params) else declared
    ways = found.get("elicitation") if isinstance(found, dict) else None
    return isinstance(ways, dict) and (not ways or "form" in ways)


def call_identity(tool: str, arguments: Mapping[str, Any], judged: Mapping[str, Any]) -> str:
    """What an approval is for: the tool, what it was called with, and what would run."""
    return hashlib.sha256(msgspec.json.encode([tool, arguments, judged], order="sorted")).hexdigest()


# -- what the server asks --------------------------------------------------------------------------------------------


class ServerQuestions:
    """What a server asks of the user (elicitation) or of the client's model (sampling): events, as are the answers."""

    def __init__(self, judge: Judge, to_client: Send, to_server: Send, server: str) -> None:
        self._judge, self._to_client, self._to_server, self._server = judge, to_client, to_server, server
        self._waiting: dict[Id, Message] = {}
        self._since = 0

    def begin(self) -> None:
        """The client made a request: the server may ask again."""
        self._since = 0

    async def asked(self, id: Id, message: Message) -> Coroutine[Any, Any, None] | None:
        """Take a request of the server's; what there is to do about it that has to wait for hooks."""
        if id in self._waiting:
            await self._to_server(wire.error(id, wire.INVALID_REQUEST, f"a request with the id `{id}` is under way"))
        elif message["method"] not in (_ELICIT, _SAMPLE):
            self._waiting[id] = message
            await self._to_client(message)
        elif (since := self._since + 1) > _MOST_QUESTIONS:
            await self._to_server(wire.error(id, wire.REFUSED, f"more than {_MOST_QUESTIONS} questions in a row"))
        else:
            self._since = since
            self._waiting[id] = message
            return self._ask(id, message)
        return None

    async def _ask(self, id: Id, message: Message) -> None:
        outcome = await self._judge_request(message)
        if outcome is None:
            await self._to_client(message)
        else:
            del self._waiting[id]
            await self._to_server(_answer_to(id, outcome))

    def answered(self, id: Id, message: Message) -> Coroutine[Any, Any, None] | None:
        """Take an answer of the client's: what to do about it; `None` if nothing was asked."""
        asked = self._waiting.pop(id, None)
        return None if asked is None else self._answer(id, asked["method"], message)

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
                Elicitation, mcp_server_name=self._server, message=str(params.get("message") or ""),
                mode=str(params.get("mode") or "form"), url=params.get("url"),
                requested_schema=params.get("requestedSchema"),
            )  # fmt: skip
            return _in_users_place(reply)
        if message.get("method") == _SAMPLE:
            reply = await self._judge(PreModelCall, model=self._server, messages=params.get("messages") or [])
            return reply.reason or "denied" if reply.decision is Decision.DENY else None
        return None

    async def _judge_answer(self, method: str, value: dict[str, Any]) -> dict[str, Any] | str | None:
        """What the server gets instead of the client's answer; `None` if that is to stay."""
        if method == _ELICIT:
            given = {"action": str(value.get("action") or "cancel"), "content": value.get("content")}
            return _in_users_place(await self._judge(ElicitationResult, mcp_server_name=self._server, **given))
        if method == _SAMPLE:
            content = value.get("content")
            text = str(content.get("text", "")) if isinstance(content, dict) else msgspec.json.encode(content).decode()
            reply = await self._judge(PostModelCall, model=str(value.get("model", "")), text=text)
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
