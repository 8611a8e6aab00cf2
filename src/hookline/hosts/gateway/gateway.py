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

from hookline.core.engine.engine import FiresAsync
from hookline.errors import ConfigError
from hookline.events import SessionEnd
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.judging import CallJudge, HostNotes, Judge, Send, ServerCall, ServerQuestions
from hookline.hosts.gateway.messages import Id, Message
from hookline.hosts.gateway.pins import Pins, definitions_in, offer

log: logging.Logger = logging.getLogger("hookline.mcp")
_LIST_SECONDS = 60.0
_MOST_PAGES = 100
_MOST_LISTS = 5
_DESCRIBES = ("initialize", "server/discover", "tools/list")


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
            await send(wire.request(key, method, params))
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
                self._listing = asyncio.create_task(self._list(wire.meta_of(params)))
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


class Gateway:
    """One client, one server, and the hooks between them.

    `from_client` and `from_server` take one message each and return soon: what has to wait for hooks goes on by itself.
    """

    def __init__(
        self, hooks: FiresAsync, name: str, pins: Pins, to_client: Send, to_server: Send, *, ask_seconds: float = 120.0,
        host: HostNotes | None = None,
    ) -> None:  # fmt: skip
        self._pins, self._to_client, self._to_server = pins, to_client, to_server
        self.judge: Judge = Judge(hooks, name, ask_seconds)
        self._open: dict[Id | None, OpenRequest] = {}
        self.idle: asyncio.Event = asyncio.Event()
        """Whether every request of the client is answered."""
        self.idle.set()
        self._own = OwnRequests(name)
        self._tools = ToolList(self._own, to_server, pins, name)
        self._questions = ServerQuestions(self.judge, to_client, to_server, self._start)
        elicit = partial(self._own.ask, to_client, "elicitation/create")
        self._calls = CallJudge(self.judge, pins, self._questions, elicit, host)
        self._work: set[asyncio.Task[None]] = set()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _answer(self, key: Id | None, message: Message) -> None:
        """Send the client its answer, unless the request was cancelled meanwhile."""
        if key in self._open:
            await self._to_client(message)
            self._forget(key)

    def _forget(self, key: Id | None) -> OpenRequest | None:
        """The client does not wait for this one any longer."""
        gone = self._open.pop(key, None)
        if not self._open:
            self.idle.set()
        return gone

    async def end(self, why: str) -> None:
        """The server is gone: what the client still waits for is answered with an error."""
        self._tools.forget()
        for task in [*self._work]:
            task.cancel()
        for key in list(self._open):
            await self._answer(key, wire.error(key, wire.INTERNAL_ERROR, why))
        await self.judge.tell(SessionEnd)

    # -- from the client ---------------------------------------------------------------------------------------------

    async def from_client(self, message: Message) -> None:
        """Take a message of the client's."""
        method, key = message.get("method"), wire.id_of(message)
        if method is None:
            if not self._own.take(key, message) and not self._questions.answered(key, message):
                log.warning("the client answered `%s`, which was not asked", key)
        elif "id" not in message:
            await self._client_notified(message)
        elif key is None or not isinstance(method, str):
            await self._to_client(wire.error(key, wire.INVALID_REQUEST, "expected a method and an id"))
        elif key in self._open:
            await self._to_client(wire.error(key, wire.INVALID_REQUEST, f"a request with the id `{key}` is under way"))
        else:
            self._open[key] = asked = OpenRequest(method, wire.params_of(message))
            self.idle.clear()
            self._questions.in_a_row = 0
            await self._client_asked(key, asked, message)

    async def _client_notified(self, message: Message) -> None:
        gone = None
        if message["method"] == "notifications/cancelled":
            gone = self._forget(wire.id_of(wire.params_of(message), "requestId"))
        if gone is not None and gone.work is not None:
            gone.work.cancel()  # it is not with the server: not yet, or not any more
        elif not message["method"].startswith("notifications/"):  # a server could run it, and it was not judged
            log.warning("the client sent `%s` without an id", message["method"])
        else:
            await self._to_server(message)

    async def _client_asked(self, key: Id, asked: OpenRequest, message: Message) -> None:
        method, params = asked.method, asked.params
        is_call, has_name = method == "tools/call", isinstance(params.get("name"), str)
        if is_call and not (has_name and isinstance(params.get("arguments"), dict | None)):
            why = "expected a `name`, and `arguments` as an object"
            await self._answer(key, wire.error(key, wire.INVALID_PARAMS, why))
        elif is_call or method == "tools/list" or "inputResponses" in params:
            asked.work = self._start(self._admit(key, asked, message))
        else:
            if method == "initialize" and isinstance(params.get("capabilities"), dict):
                self._calls.declared = params["capabilities"]
            if method in ("tasks/get", "tasks/result") and isinstance(params.get("taskId"), str):
                asked.call = self._calls.tasks.get(params["taskId"])
            await self._to_server(message)

    async def _admit(self, key: Id, asked: OpenRequest, message: Message) -> None:
        """Send a request on once the tools are compared with the pins, and what it says is judged; or answer it."""
        method, answer = asked.method, None
        try:
            if method in ("tools/call", "tools/list"):
                await self._tools.ensure(asked.params)
            if method == "tools/call":
                message, answer = await self._judge_call(key, asked, message)
            elif (problem := await self._questions.judge_answers(asked.params)) is not None:
                answer = wire.error(key, wire.INTERNAL_ERROR, f"`{method}` was refused: {problem}")
        except LoginNeeded as login:
            answer = {"jsonrpc": "2.0", "id": key, "error": login.error}
        except Exception as failed:  # noqa: BLE001 - whatever it was, the call must not run, the tools not be offered
            why = f"`{method}` was refused: it could not be compared with the pins: {failed}"
            if method == "tools/call":
                why = f"`{asked.params['name']}` was denied: it could not be judged: {failed}"
                log.warning("`%s` could not be judged: %s", asked.params["name"], failed)
            answer = wire.refused(key, asked.params, why, is_call=method == "tools/call")
        if answer is not None:
            await self._answer(key, answer)
        else:
            asked.work = None
            await self._to_server(message)

    async def _judge_call(self, key: Id, asked: OpenRequest, message: Message) -> tuple[Message, Message | None]:
        """The call as the server gets it, and the answer if it does not."""
        params, given = asked.params, asked.params.get("arguments")
        outcome = await self._calls.admit(ServerCall(key, params, params["name"], given or {}, given or {}))
        if isinstance(outcome, str):
            return message, wire.refused(key, params, outcome, is_call=True)
        if not isinstance(outcome, ServerCall):
            return message, wire.result(key, outcome)
        asked.call = outcome
        is_bare = given is None and not outcome.judged
        sent = outcome.params if is_bare else {**outcome.params, "arguments": outcome.judged}
        return {**message, "params": sent}, None

    # -- from the server ---------------------------------------------------------------------------------------------

    async def from_server(self, message: Message) -> None:
        """Take a message of the server's."""
        method, key = message.get("method"), wire.id_of(message)
        waiting = self._open.get(key)
        if method is None and self._own.take(key, message):
            return
        if method is None and key is not None and waiting is not None and waiting.work is None:
            waiting.work = self._start(self._return(key, waiting, message))
        elif method is None:
            log.warning("the server answered `%s`, which was not asked", key)
        elif "id" in message:
            if key is not None:
                await self._questions.asked(key, message)
        else:
            if method == "notifications/tools/list_changed":
                self._tools.forget()
            await self._to_client(message)

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
            message = wire.refused(key, waiting.params, why, is_call=waiting.call is not None)
        await self._answer(key, message)
