"""The gateway between a client and a server: what either sends goes in, what the other gets comes out.

A tool call is PreToolUse, its result PostToolUse; what the server asks of the user or of the model is an event, too.
Everything else passes as it is. A call that cannot be judged is refused, a result that cannot be judged is withheld.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from typing import Any

import msgspec

from hookline.core.engine.hook_set import FiresAsync
from hookline.errors import ConfigError
from hookline.events import Event
from hookline.hosts.answer import answer
from hookline.hosts.gateway.calls import AsReply, CallJudge, ServerCall
from hookline.hosts.gateway.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Id,
    Message,
    error,
    id_of,
    meta_of,
    params_of,
    refused_call,
    request,
    result,
)  # fmt: skip
from hookline.hosts.gateway.pins import Pins, definitions_in, offer
from hookline.hosts.gateway.questions import Send, ServerQuestions
from hookline.replies import Reply

log: logging.Logger = logging.getLogger("hookline.mcp")
_LIST_SECONDS = 60.0
_MOST_PAGES = 100
_MOST_LISTS = 5


class OpenRequest(msgspec.Struct, eq=False):
    """A request of the client that is not answered yet; `work` judges it or its answer."""

    method: str
    params: dict[str, Any]
    call: ServerCall | None = None
    work: asyncio.Task[None] | None = None


class Gateway:
    """One client, one server, and the hooks between them.

    `from_client` and `from_server` take one message each and return soon: what has to wait for hooks goes on by itself.
    """

    def __init__(
        self, hooks: FiresAsync, name: str, pins: Pins, to_client: Send, to_server: Send, *, ask_seconds: float = 120.0
    ) -> None:
        self._hooks, self._name, self._pins = hooks, name, pins
        self._to_client, self._to_server = to_client, to_server
        self.session_id: str = f"mcp-{name}-{os.urandom(6).hex()}"
        self._cwd = os.getcwd()  # noqa: PTH109 - as text
        self._questions = ServerQuestions(self._judge, to_client, to_server, name)
        self._calls = CallJudge(self._judge, name, pins, self._questions, self._elicit, ask_seconds=ask_seconds)
        self._requests: dict[Id | None, OpenRequest] = {}
        self._own: dict[Id | None, asyncio.Future[Message]] = {}
        self._own_prefix = f"hookline-{os.urandom(6).hex()}-"
        self._listing: asyncio.Task[None] | None = None
        self._work: set[asyncio.Task[None]] = set()
        self.idle: asyncio.Event = asyncio.Event()
        """Whether every request of the client's is answered."""
        self.idle.set()

    async def _judge(self, kind: type[Event], /, **fields: Any) -> Reply:
        return await answer(self._hooks, kind(session_id=self.session_id, cwd=self._cwd, **fields), AsReply())

    # -- from the client ---------------------------------------------------------------------------------------------

    async def from_client(self, message: Message) -> None:
        """Take a message of the client's."""
        method, key, params = message.get("method"), id_of(message), params_of(message)
        if method is None:
            await self._client_answered(key, message)
        elif "id" not in message:
            await self._client_notified(message, params)
        elif key is None or not isinstance(method, str) or key in self._requests:
            is_open = key in self._requests
            why = f"a request with the id `{key}` is under way" if is_open else "expected a method and an id"
            await self._to_client(error(key, INVALID_REQUEST, why))
        else:
            self._questions.begin()
            self._requests[key] = OpenRequest(method, params)
            self.idle.clear()
            await self._client_asked(key, method, params, message)

    async def _client_asked(self, key: Id, method: str, params: dict[str, Any], message: Message) -> None:
        if method == "tools/call":
            self._requests[key].work = self._start(self._call(key, params, message))
        elif method == "tools/list":
            self._requests[key].work = self._start(self._list(key, params, message))
        else:
            if method == "initialize" and isinstance(params.get("capabilities"), dict):
                self._calls.declared = params["capabilities"]
            if method in ("tasks/get", "tasks/result"):
                self._requests[key].call = self._calls.task(params.get("taskId"))
            await self._to_server(message)

    async def _client_answered(self, key: Id | None, message: Message) -> None:
        if key in self._own:
            self._answered(key, message)
        elif key is not None and (work := self._questions.answered(key, message)) is not None:
            self._start(work)
        else:
            log.warning("the client answered `%s`, which was not asked", key)

    async def _client_notified(self, message: Message, params: dict[str, Any]) -> None:
        gone = None
        if message["method"] == "notifications/cancelled":
            gone = self._forget(id_of(params, "requestId"))
        if gone is not None and gone.work is not None:
            gone.work.cancel()  # it is not with the server: not yet, or not any more
        elif not message["method"].startswith("notifications/"):  # a server could run it, and it was not judged
            log.warning("the client sent `%s` without an id", message["method"])
        else:
            await self._to_server(message)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _answer(self, key: Id | None, message: Message) -> None:
        """The client's request is answered, unless it was cancelled meanwhile."""
        if self._requests.get(key) is not None:
            await self._to_client(message)
            self._forget(key)

    def _forget(self, key: Id | None) -> OpenRequest | None:
        gone = self._requests.pop(key, None)
        if not self._requests:
            self.idle.set()
        return gone

    async def _call(self, key: Id, params: dict[str, Any], message: Message) -> None:
        tool, arguments = params.get("name"), params.get("arguments")
        if not isinstance(tool, str) or not isinstance(arguments if arguments is not None else {}, dict):
            await self._answer(key, error(key, INVALID_PARAMS, "expected a `name`, and `arguments` as an object"))
            return
        try:
            outcome = await self._admit(key, tool, params)
        except Exception as problem:  # noqa: BLE001 - whatever it was, the call must not run
            log.warning("`%s` could not be judged: %s", tool, problem)
            outcome = f"`{tool}` was denied: it could not be judged: {problem}"
        if isinstance(outcome, ServerCall):
            self._requests[key].call = outcome
            self._requests[key].work = None
            sent = (
                outcome.params
                if arguments is None and not outcome.judged
                else {**outcome.params, "arguments": outcome.judged}
            )
            await self._to_server({**message, "params": sent})
        else:
            await self._answer(
                key, refused_call(key, params, outcome) if isinstance(outcome, str) else result(key, outcome)
            )

    async def _admit(self, key: Id, tool: str, params: dict[str, Any]) -> ServerCall | str | dict[str, Any]:
        await self._ensure_listed(params)
        arguments = params.get("arguments") or {}
        return await self._calls.admit(ServerCall(key, params, tool, arguments, arguments))

    # -- requests of our own -----------------------------------------------------------------------------------------

    async def _elicit(self, question: dict[str, Any], seconds: float) -> Message:
        return await self._request(self._to_client, "elicitation/create", question, seconds)

    async def _request(self, send: Send, method: str, params: dict[str, Any], seconds: float) -> Message:
        key = f"{self._own_prefix}{os.urandom(6).hex()}"
        self._own[key] = asyncio.get_running_loop().create_future()
        try:
            await send(request(key, method, params))
            return await asyncio.wait_for(self._own[key], seconds)
        except TimeoutError:
            raise ConfigError(self._name, f"no answer to `{method}` within {seconds:g} s") from None
        finally:
            self._own.pop(key, None)

    def _answered(self, key: Id | None, message: Message) -> None:
        if key is not None and not self._own[key].done():
            self._own[key].set_result(message)

    async def _ensure_listed(self, params: dict[str, Any]) -> None:
        """List the tools before they are used: a client may call from a list that it remembers."""
        for _ in range(_MOST_LISTS):
            if self._listing is None or (self._listing.done() and self._listing.exception() is not None):
                self._listing = asyncio.create_task(self._list_all(meta_of(params)))
            listing = self._listing
            await asyncio.shield(listing)
            if listing is self._listing:
                return
        raise ConfigError(self._name, "the server's tools change all the time")

    async def _list_all(self, meta: dict[str, Any]) -> None:
        about = {"_meta": {key: value for key, value in meta.items() if key != "progressToken"}} if meta else {}
        tools: list[tuple[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            page = await self._request(self._to_server, "tools/list", {**about, **cursor}, _LIST_SECONDS)
            found = page.get("result")
            if not isinstance(found, dict):
                raise ConfigError(self._name, f"the server does not list its tools: {page.get('error')}")
            tools += definitions_in(found)
            if not found.get("nextCursor"):
                return self._pins.observe(tools)
            cursor = {"cursor": found["nextCursor"]}
        raise ConfigError(self._name, f"the list of tools has more than {_MOST_PAGES} pages")

    async def _list(self, key: Id, params: dict[str, Any], message: Message) -> None:
        try:
            await self._ensure_listed(params)
        except Exception as problem:  # noqa: BLE001 - what cannot be compared is not offered
            await self._answer(
                key, error(key, INTERNAL_ERROR, f"the tools could not be compared with the pins: {problem}")
            )
            return
        self._requests[key].work = None
        await self._to_server(message)

    # -- from the server ---------------------------------------------------------------------------------------------

    async def from_server(self, message: Message) -> None:
        """Take a message of the server's."""
        method, key = message.get("method"), id_of(message)
        if method is None:
            await self._server_answered(key, message)
        elif "id" in message:
            if key is not None and (work := await self._questions.asked(key, message)) is not None:
                self._start(work)
        else:
            if method == "notifications/tools/list_changed":
                self._listing = None
            await self._to_client(message)

    async def _server_answered(self, key: Id | None, message: Message) -> None:
        waiting = self._requests.get(key) if key is not None else None
        if key in self._own:
            self._answered(key, message)
        elif key is None or waiting is None or waiting.work is not None:
            log.warning("the server answered `%s`, which was not asked", key)
        else:
            waiting.work = self._start(self._return(key, waiting, message))

    async def _return(self, key: Id, waiting: OpenRequest, message: Message) -> None:
        """Judge an answer where it has to be, and hand it to the client."""
        try:
            value = message.get("result")
            if isinstance(value, dict) and value.get("resultType") == "input_required":
                message = await self._input_required(key, waiting, value)
            elif waiting.call is not None:
                message = await self._calls.judge_result(key, waiting.call, message)
            elif isinstance(value, dict) and waiting.method in ("initialize", "server/discover", "tools/list"):
                message = {**message, "result": offer(self._pins, value)}
        except Exception as problem:  # noqa: BLE001 - what cannot be judged is withheld
            log.warning("an answer to `%s` is withheld: %s", waiting.method, problem)
            why = f"the result is withheld: it could not be judged: {problem}"
            is_call = waiting.call is not None
            message = refused_call(key, waiting.params, why) if is_call else error(key, INTERNAL_ERROR, why)
        await self._answer(key, message)

    async def _input_required(self, key: Id, waiting: OpenRequest, value: dict[str, Any]) -> Message:
        objection = await self._questions.judge_requests(value)
        call = waiting.call
        if objection is not None:
            is_call = call is not None
            return refused_call(key, waiting.params, objection) if is_call else error(key, INVALID_REQUEST, objection)
        return result(key, value if call is None else self._calls.keep_approval(call, value))

    # -- the end -----------------------------------------------------------------------------------------------------

    async def end(self, why: str) -> None:
        """The server is gone: what the client still waits for is answered with an error."""
        for task in [*self._work, *([self._listing] if self._listing is not None else [])]:
            task.cancel()
        for key in list(self._requests):
            await self._answer(key, error(key, INTERNAL_ERROR, why))
