"""The gateway between a client and a server: what either sends goes in, what the other gets comes out.

A tool call is PreToolUse, its result PostToolUse; what the server asks of the user or of the model is an event, too.
Everything else passes as it is. A call that cannot be judged is refused, a result that cannot be judged is withheld.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec

from hookline.core.engine import Verdict
from hookline.core.engine.composition import answer_seconds
from hookline.core.engine.engine import FiresAsync, ask_people
from hookline.errors import ConfigError
from hookline.events import Event, PreToolUse, SessionEnd, SessionStart
from hookline.hosts.answer import fails_closed, refusal, reply_for, within_rules
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.calls import CallJudge, HostNotes, ServerCall
from hookline.hosts.gateway.messages import Id, Message, error, meta_of, request
from hookline.hosts.gateway.pins import Pins, definitions_in, offer
from hookline.hosts.gateway.questions import Send, ServerQuestions
from hookline.replies import Reply, deny

_LIST_SECONDS = 60.0
_MOST_PAGES = 100
_MOST_LISTS = 5


class LoginNeeded(Exception):
    """The server wants a login before it lists its tools: its error, which says so to the client."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


class OpenRequest(msgspec.Struct, eq=False):
    """A request of the client that is not answered yet; `work` judges it or its answer."""

    method: str
    params: dict[str, Any]
    call: ServerCall | None = None
    work: asyncio.Task[None] | None = None


class ClientRequests:
    """What the client has asked for, by id."""

    def __init__(self, to_client: Send) -> None:
        self._to_client = to_client
        self._open: dict[Id | None, OpenRequest] = {}
        self.idle: asyncio.Event = asyncio.Event()
        """Whether every one of them is answered."""
        self.idle.set()

    def add(self, key: Id, made: OpenRequest) -> bool:
        """Take a request; `False` if one with that id is under way."""
        if key in self._open:
            return False
        self._open[key] = made
        self.idle.clear()
        return True

    def get(self, key: Id | None) -> OpenRequest | None:
        """The request of that id, while it is under way."""
        return self._open.get(key)

    async def answer(self, key: Id | None, message: Message) -> None:
        """Send the client its answer, unless the request was cancelled meanwhile."""
        if key in self._open:
            await self._to_client(message)
            self.forget(key)

    def forget(self, key: Id | None) -> OpenRequest | None:
        """The client does not wait for this one any longer."""
        gone = self._open.pop(key, None)
        if not self._open:
            self.idle.set()
        return gone

    async def fail_all(self, code: int, why: str) -> None:
        """Nothing more will be answered."""
        for key in list(self._open):
            await self.answer(key, error(key, code, why))


class OwnRequests:
    """What the gateway itself asks the client or the server; no id of theirs can be one of its own."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._prefix = f"hookline-{os.urandom(6).hex()}-"
        self._waiting: dict[Id, asyncio.Future[Message]] = {}

    async def ask(self, send: Send, method: str, params: Mapping[str, Any], seconds: float) -> Message:
        """The answer; none in time is a `ConfigError`."""
        key = f"{self._prefix}{os.urandom(6).hex()}"
        self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await send(request(key, method, params))
            return await asyncio.wait_for(self._waiting[key], seconds)
        except TimeoutError:
            raise ConfigError(self._server, f"no answer to `{method}` within {seconds:g} s") from None
        finally:
            self._waiting.pop(key, None)

    def take(self, key: Id | None, message: Message) -> bool:
        """Whether this answers one of ours."""
        waiting = self._waiting.get(key) if key is not None else None
        if waiting is not None and not waiting.done():
            waiting.set_result(message)
        return waiting is not None


class ToolList:
    """The server's tools, listed before they are used: a client may call from a list that it remembers."""

    def __init__(self, own: OwnRequests, to_server: Send, pins: Pins, server: str) -> None:
        self._own, self._to_server, self._pins, self._server = own, to_server, pins, server
        self._listing: asyncio.Task[None] | None = None

    def forget(self) -> None:
        """The server says that they have changed, or is gone."""
        if self._listing is not None and not self._listing.done():
            self._listing.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._listing = None

    async def ensure(self, params: Mapping[str, Any]) -> None:
        """Compare them with the pins, once for all who ask; `params` say in which era to list."""
        for _ in range(_MOST_LISTS):
            if self._listing is None or (self._listing.done() and self._listing.exception() is not None):
                self._listing = asyncio.create_task(self._list(meta_of(params)))
            listing = self._listing
            await asyncio.shield(listing)
            if listing is self._listing:
                return
        raise ConfigError(self._server, "the server's tools change all the time")

    async def _list(self, meta: dict[str, Any]) -> None:
        about = {"_meta": {key: value for key, value in meta.items() if key != "progressToken"}} if meta else {}
        tools: list[tuple[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            page = await self._own.ask(self._to_server, "tools/list", {**about, **cursor}, _LIST_SECONDS)
            found = page.get("result")
            failed = page.get("error")
            if isinstance(failed, dict) and isinstance(failed.get("data"), dict) and "login" in failed["data"]:
                raise LoginNeeded(failed)
            if not isinstance(found, dict):
                raise ConfigError(self._server, f"the server does not list its tools: {failed}")
            tools += definitions_in(found)
            if not found.get("nextCursor"):
                return self._pins.observe(tools)
            cursor = {"cursor": found["nextCursor"]}
        raise ConfigError(self._server, f"the list of tools has more than {_MOST_PAGES} pages")


log: logging.Logger = logging.getLogger("hookline.mcp")
_DESCRIBES = ("initialize", "server/discover", "tools/list")


class Gateway:
    """One client, one server, and the hooks between them.

    `from_client` and `from_server` take one message each and return soon: what has to wait for hooks goes on by itself.
    """

    def __init__(
        self, hooks: FiresAsync, name: str, pins: Pins, to_client: Send, to_server: Send, *, ask_seconds: float = 120.0,
        host: HostNotes | None = None,
    ) -> None:  # fmt: skip
        self._hooks, self._pins = hooks, pins
        self._to_client, self._to_server = to_client, to_server
        self.session_id: str = f"mcp-{name}-{os.urandom(6).hex()}"
        self._cwd = os.getcwd()  # noqa: PTH109 - as text
        self._requests, self._own = ClientRequests(to_client), OwnRequests(name)
        self._tools = ToolList(self._own, to_server, pins, name)
        self._questions = ServerQuestions(self._judge, to_client, to_server, name)
        elicit = partial(self._own.ask, to_client, "elicitation/create")
        self._ask_seconds = ask_seconds
        self._calls = CallJudge(
            self._judge, name, pins, self._questions, elicit, people=self._ask_people, ask_seconds=ask_seconds,
            host=host,
        )  # fmt: skip
        self._work: set[asyncio.Task[None]] = set()
        self.idle: asyncio.Event = self._requests.idle

    async def _judge(self, kind: type[Event], /, **fields: Any) -> Reply:
        """The hooks' reply; what cannot be judged is denied, and where nothing can be prevented any more it raises."""
        event = kind(session_id=self.session_id, cwd=self._cwd, **fields)
        try:
            return within_rules(reply_for(await self._hooks.fire(event)), event)
        except (Exception, SystemExit) as problem:
            if not fails_closed(event):
                raise
            log.warning("hooks on %s could not be asked: %s", kind.event_name, problem)
            return deny(refusal(problem, event))

    async def _ask_people(self, fields: dict[str, Any], reply: Reply) -> Reply | None:
        """The answer of a person who is asked elsewhere; `None` if there is no one."""
        event = PreToolUse(session_id=self.session_id, cwd=self._cwd, **fields)
        hooks = getattr(self._hooks, "hooks", ())
        seconds = answer_seconds.set(self._ask_seconds)
        try:
            said = await ask_people(self._hooks, Verdict(event, reply, chosen=hooks, known=()))
        finally:
            answer_seconds.reset(seconds)
        return said if isinstance(said, Reply) else None

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def tell(self, kind: type[SessionStart | SessionEnd]) -> None:
        """Let the hooks know that the session begins or ends; one that fails then holds up nothing."""
        try:
            await self._judge(kind)
        except Exception as problem:  # noqa: BLE001 - whatever it was, nothing is let through by it
            log.warning("hooks on %s could not be asked: %s", kind.event_name, problem)

    async def end(self, why: str) -> None:
        """The server is gone: what the client still waits for is answered with an error."""
        self._tools.forget()
        for task in [*self._work]:
            task.cancel()
        await self._requests.fail_all(wire.INTERNAL_ERROR, why)
        await self.tell(SessionEnd)

    # -- from the client ---------------------------------------------------------------------------------------------

    async def from_client(self, message: Message) -> None:
        """Take a message of the client's."""
        method, key, params = message.get("method"), wire.id_of(message), wire.params_of(message)
        if method is None:
            await self._client_answered(key, message)
        elif "id" not in message:
            await self._client_notified(message, params)
        elif key is None or not isinstance(method, str):
            await self._to_client(wire.error(key, wire.INVALID_REQUEST, "expected a method and an id"))
        elif not self._requests.add(key, asked := OpenRequest(method, params)):
            await self._to_client(wire.error(key, wire.INVALID_REQUEST, f"a request with the id `{key}` is under way"))
        else:
            self._questions.begin()
            await self._client_asked(key, asked, message)

    async def _client_asked(self, key: Id, asked: OpenRequest, message: Message) -> None:
        method, params = asked.method, asked.params
        if method == "tools/call":
            asked.work = self._start(self._call(key, asked, message))
        elif method == "tools/list" or "inputResponses" in params:
            asked.work = self._start(self._check(key, asked, message))
        else:
            if method == "initialize" and isinstance(params.get("capabilities"), dict):
                self._calls.declared = params["capabilities"]
            if method in ("tasks/get", "tasks/result"):
                asked.call = self._calls.task(params.get("taskId"))
            await self._to_server(message)

    async def _client_answered(self, key: Id | None, message: Message) -> None:
        if self._own.take(key, message):
            return
        if key is not None and (work := self._questions.answered(key, message)) is not None:
            self._start(work)
        else:
            log.warning("the client answered `%s`, which was not asked", key)

    async def _client_notified(self, message: Message, params: dict[str, Any]) -> None:
        gone = None
        if message["method"] == "notifications/cancelled":
            gone = self._requests.forget(wire.id_of(params, "requestId"))
        if gone is not None and gone.work is not None:
            gone.work.cancel()  # it is not with the server: not yet, or not any more
        elif not message["method"].startswith("notifications/"):  # a server could run it, and it was not judged
            log.warning("the client sent `%s` without an id", message["method"])
        else:
            await self._to_server(message)

    async def _call(self, key: Id, asked: OpenRequest, message: Message) -> None:
        params, tool, arguments = asked.params, asked.params.get("name"), asked.params.get("arguments")
        if not isinstance(tool, str) or not isinstance(arguments if arguments is not None else {}, dict):
            why = "expected a `name`, and `arguments` as an object"
            await self._requests.answer(key, wire.error(key, wire.INVALID_PARAMS, why))
            return
        try:
            await self._tools.ensure(params)
            outcome = await self._calls.admit(ServerCall(key, params, tool, arguments or {}, arguments or {}))
        except LoginNeeded as login:
            await self._requests.answer(key, {"jsonrpc": "2.0", "id": key, "error": login.error})
            return
        except Exception as problem:  # noqa: BLE001 - whatever it was, the call must not run
            log.warning("`%s` could not be judged: %s", tool, problem)
            outcome = f"`{tool}` was denied: it could not be judged: {problem}"
        if isinstance(outcome, ServerCall):
            asked.call, asked.work = outcome, None
            is_bare = arguments is None and not outcome.judged
            sent = outcome.params if is_bare else {**outcome.params, "arguments": outcome.judged}
            await self._to_server({**message, "params": sent})
        else:
            said = wire.refused_call(key, params, outcome) if isinstance(outcome, str) else wire.result(key, outcome)
            await self._requests.answer(key, said)

    async def _check(self, key: Id, asked: OpenRequest, message: Message) -> None:
        """What goes to the server once the tools are compared with the pins, or answers to its questions are judged."""
        try:
            if asked.method == "tools/list":
                await self._tools.ensure(asked.params)
            problem = await self._questions.judge_answers(asked.params)
        except LoginNeeded as login:
            await self._requests.answer(key, {"jsonrpc": "2.0", "id": key, "error": login.error})
            return
        except Exception as failed:  # noqa: BLE001 - what cannot be compared is not offered
            problem = f"it could not be compared with the pins: {failed}"
        if problem is not None:
            await self._requests.answer(
                key, wire.error(key, wire.INTERNAL_ERROR, f"`{asked.method}` was refused: {problem}")
            )
            return
        asked.work = None
        await self._to_server(message)

    # -- from the server ---------------------------------------------------------------------------------------------

    async def from_server(self, message: Message) -> None:
        """Take a message of the server's."""
        method, key = message.get("method"), wire.id_of(message)
        if method is None:
            await self._server_answered(key, message)
        elif "id" in message:
            if key is not None and (work := await self._questions.asked(key, message)) is not None:
                self._start(work)
        else:
            if method == "notifications/tools/list_changed":
                self._tools.forget()
            await self._to_client(message)

    async def _server_answered(self, key: Id | None, message: Message) -> None:
        if self._own.take(key, message):
            return
        waiting = self._requests.get(key) if key is not None else None
        if key is None or waiting is None or waiting.work is not None:
            log.warning("the server answered `%s`, which was not asked", key)
        else:
            waiting.work = self._start(self._return(key, waiting, message))

    async def _return(self, key: Id, waiting: OpenRequest, message: Message) -> None:
        """Judge an answer where it has to be, and hand it to the client."""
        try:
            value = message.get("result")
            if isinstance(value, dict) and value.get("resultType") == "input_required":
                message = await self._calls.pass_questions(key, waiting.call, waiting.params, value)
            elif waiting.call is not None:
                message = await self._calls.judge_result(key, waiting.call, message)
            elif isinstance(value, dict) and waiting.method in _DESCRIBES:
                message = {**message, "result": offer(self._pins, value)}
        except Exception as problem:  # noqa: BLE001 - what cannot be judged is withheld
            log.warning("an answer to `%s` is withheld: %s", waiting.method, problem)
            why = f"the result is withheld: it could not be judged: {problem}"
            is_call = waiting.call is not None
            message = (
                wire.refused_call(key, waiting.params, why) if is_call else wire.error(key, wire.INTERNAL_ERROR, why)
            )
        await self._requests.answer(key, message)
