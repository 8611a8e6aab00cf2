"""The gateway at an address (streamable HTTP): for clients that want a URL, in both protocol eras.

A client that initializes gets a session with a connection to the server of its own. Requests of the stateless era
share one, under ids that are ours: two clients may use the same. Only this machine is served, and only with the token,
unless the caller says otherwise; a page of another origin is refused.
"""

import asyncio
import contextlib
import hmac
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from hookline.core.origin import LOOPBACK, foreign
from hookline.display import one_line
from hookline.errors import ConfigError, EventError, HooklineError, extra
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.gateway import Gateway, log
from hookline.hosts.gateway.messages import Id, Message
from hookline.hosts.gateway.pins import Send

with extra("`hookline mcp serve`", "console"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

PATH = "/mcp"
_STATELESS_SINCE = "2026-07-28"
_MOST_SESSIONS = 64
_MOST_UNASKED = 1_000
_STREAM = {"content-type": "text/event-stream", "cache-control": "no-store"}
Connect = Callable[[Send, Mapping[str, str]], Awaitable[Gateway]]
"""Makes an open gateway, from where the client's messages go and the client's own headers."""


class Exchange:
    """A request of the client: its id and progress token as the server sees them, and what it is answered with."""

    def __init__(self, message: Message, key: Id) -> None:
        self._client_id, self._token = message["id"], wire.meta_of(wire.params_of(message)).get("progressToken")
        self.key = key
        self.is_stateless: bool = wire.is_stateless(wire.params_of(message))
        self.queue: asyncio.Queue[Message] = asyncio.Queue()
        self.message: Message = {**message, "id": key}
        if self._token is not None:
            params = wire.params_of(message)
            self.message["params"] = {**params, "_meta": {**wire.meta_of(params), "progressToken": key}}

    def put(self, message: Message) -> None:
        """Hand the client a message, in its own terms."""
        if "method" not in message:
            message = {**message, "id": self._client_id}
        else:
            params = dict(wire.params_of(message))
            if params.get("progressToken") == self.key:
                params["progressToken"] = self._token
            if wire.meta_of(params).get(wire.SUBSCRIPTION) == self.key:
                params["_meta"] = {**wire.meta_of(params), wire.SUBSCRIPTION: self._client_id}
            message = {**message, "params": params} if params else message
        self.queue.put_nowait(message)


class ClientSession:
    """What a client has under way on a connection; `is_shared` if it is that of all stateless clients."""

    def __init__(self, name: str, *, is_shared: bool) -> None:
        self.name, self._is_shared = name, is_shared
        self.open: dict[Id, Exchange] = {}
        self.unasked: asyncio.Queue[Message] = asyncio.Queue(_MOST_UNASKED)
        self.gateway: asyncio.Future[Gateway]

    def exchange(self, message: Message) -> Exchange | None:
        """Begin one; `None` if the client uses an id twice."""
        key: Id = f"c{os.urandom(8).hex()}" if self._is_shared else message["id"]
        if key in self.open:
            return None
        self.open[key] = made = Exchange(message, key)
        return made

    async def send(self, message: Message) -> None:
        """What the gateway has for the client: for the exchange that it belongs to, else the latest one, else aside."""
        params = wire.params_of(message)
        about = wire.id_of(message) if "method" not in message else wire.id_of(params, "progressToken")
        about = about if about is not None else wire.id_of(wire.meta_of(params), wire.SUBSCRIPTION)
        found = self.open.get(about) if about is not None else None
        if found is None and not self._is_shared and "method" in message:
            found = next(reversed(self.open.values()), None)
            if found is None:
                with contextlib.suppress(asyncio.QueueFull):
                    self.unasked.put_nowait(message)
        if found is not None:
            found.put(message)

    async def from_client(self, message: Message) -> None:
        """What the client has for the gateway; a request that it cancels has no answer."""
        if message.get("method") == "notifications/cancelled":
            gone = self.open.pop(wire.id_of(wire.params_of(message), "requestId") or "", None)
            if gone is not None:
                gone.queue.put_nowait({})
        await (await self.gateway).from_client(message)

    async def leave(self, exchange: Exchange) -> None:
        """The client waits for this no longer; in the stateless era, hanging up says so."""
        if self.open.pop(exchange.key, None) is not None and exchange.is_stateless:
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": exchange.key}}
            await self.from_client(cancelled)

    async def stream(self, exchange: Exchange, message: Message) -> AsyncIterator[bytes]:
        """An exchange as events, from its first message on."""
        try:
            while "method" in message:
                yield _event(message)
                message = await exchange.queue.get()
            self.open.pop(exchange.key, None)
            if message:
                yield _event(message)
        finally:
            await self.leave(exchange)

    async def stream_unasked(self) -> AsyncIterator[bytes]:
        yield b": open\n\n"
        while True:
            yield _event(await self.unasked.get())

    async def close(self) -> None:
        """End the gateway; what is under way is answered with an error."""
        await (await self.gateway).close()


class Listener:
    """Serves clients over HTTP; without a `token`, the client's `Authorization` is for the server behind."""

    def __init__(self, connect: Connect, token: str | None, host: str = "127.0.0.1") -> None:
        self._connect, self._token, self._host = connect, token, host
        self._sessions: dict[str, ClientSession] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._port = 0

    async def serve(self, port: int, ready: Callable[[int], None]) -> None:
        """Listen until a signal ends it; `ready` gets the port."""
        routes = [Route(PATH, self._handle, methods=["POST", "GET", "DELETE"])]
        config = uvicorn.Config(
            Starlette(routes=routes), access_log=False, log_level="critical", server_header=False, date_header=False,
            lifespan="off", timeout_graceful_shutdown=1,
        )  # fmt: skip
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listening = socket.create_server((self._host, port), family=family)
        except OSError as problem:
            raise ConfigError(f"{self._host}:{port}", f"cannot be listened on: {problem.strerror}") from None
        server = uvicorn.Server(config)
        with listening:
            self._port = listening.getsockname()[1]
            ready(self._port)
            running = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                await asyncio.shield(running)
            finally:  # no program that was started for a client outlives this
                for session in list(self._sessions):
                    self._end(session)
                await asyncio.gather(*self._ending)
                server.should_exit = True
                await running

    async def _handle(self, request: Request) -> Response:
        is_local = self._host in (name.strip("[]") for name in LOOPBACK)
        if is_local and (why := foreign(request.headers, self._port)):
            return _refused(403, why)
        given = request.headers.get("authorization", "").encode()
        if self._token is not None and not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            return _refused(401, "expected the gateway's token", {"www-authenticate": "Bearer"})
        try:
            return await {"POST": self._post, "DELETE": self._delete}.get(request.method, self._get)(request)
        except HooklineError as problem:
            log.warning("%s", problem)
            return _refused(502, str(problem))

    async def _post(self, request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > wire.MOST_BYTES:
                return _refused(413, "the message is too long")
        try:
            (message,) = wire.read_messages(bytes(body))
        except (EventError, ValueError) as problem:
            return _answer(wire.error(None, wire.PARSE_ERROR, one_line(str(problem))), 400)
        if why := _mismatch(message, request.headers):
            return _answer(wire.error(wire.id_of(message), wire.HEADER_MISMATCH, why), 400)
        session = await self._session(message, request)
        if session is None:
            named = request.headers.get("mcp-session-id")
            return _refused(404 if named else 400, "no such session; initialize first")
        if not message.get("method") or wire.id_of(message) is None:
            await session.from_client(message)
            return Response(status_code=202)
        exchange = session.exchange(message)
        if exchange is None:
            why = f"a request with the id `{message['id']}` is under way"
            return _answer(wire.error(message["id"], wire.INVALID_REQUEST, why), 400)
        return await self._answered(session, exchange, request)

    async def _session(self, message: Message, request: Request) -> ClientSession | None:
        """The session that a message belongs to; one that initializes gets a new one."""
        headers, meta = request.headers, wire.meta_of(wire.params_of(message))
        version = meta.get(wire.VERSION) or headers.get("mcp-protocol-version", "")
        given = headers.get("mcp-session-id", "")
        is_shared = not given and str(version) >= _STATELESS_SINCE
        if is_shared:  # with one login, if it is the server that wants one
            given = f" {headers.get('authorization', '')}"
        elif message.get("method") == "initialize":
            given = os.urandom(16).hex()
        elif given not in self._sessions or given.startswith(" "):
            return None
        if given not in self._sessions:
            self._make_room()
            session = self._sessions[given] = ClientSession(given, is_shared=is_shared)
            session.gateway = asyncio.ensure_future(self._connect(session.send, headers))
            try:
                (await session.gateway).pump.add_done_callback(lambda _: self._end(given))
            except HooklineError:
                self._sessions.pop(given, None)
                raise
        session = self._sessions[given] = self._sessions.pop(given)  # the latest is last
        return session

    def _make_room(self) -> None:
        if len(self._sessions) < _MOST_SESSIONS:
            return
        idle = next((name for name, one in self._sessions.items() if not one.open), None)
        if idle is None:
            raise HooklineError(f"more than {_MOST_SESSIONS} sessions are busy")
        self._end(idle)

    async def _answered(self, session: ClientSession, exchange: Exchange, request: Request) -> Response:
        """The answer as JSON if nothing comes before it, else a stream; a client that leaves has cancelled."""
        headers = {"mcp-session-id": session.name} if exchange.message["method"] == "initialize" else {}
        await session.from_client(exchange.message)
        first = await _unless_gone(exchange.queue.get(), request)
        if first is None:
            await session.leave(exchange)
            return Response(status_code=499)
        if "method" in first:
            return StreamingResponse(session.stream(exchange, first), headers={**_STREAM, **headers})
        session.open.pop(exchange.key, None)
        if not first:
            return Response(status_code=202)
        login = (first.get("error") or {}).get("data") if self._token is None else None
        if isinstance(login, dict) and isinstance(login.get("login"), str):
            return _answer(first, int(login["status"]), {"www-authenticate": login["login"]})
        return _answer(first, 200, headers)

    async def _get(self, request: Request) -> Response:
        """What the server says by itself, for clients with a session."""
        session = self._sessions.get(request.headers.get("mcp-session-id", "-"))
        if session is None:
            return _refused(405, "a stream is for sessions")
        return StreamingResponse(session.stream_unasked(), headers=_STREAM)

    async def _delete(self, request: Request) -> Response:
        name = request.headers.get("mcp-session-id", "-")
        if name not in self._sessions or name.startswith(" "):
            return _refused(404, "no such session")
        self._end(name)
        return Response(status_code=204)

    def _end(self, name: str) -> None:
        """Take a session out of use at once; its server ends by and by."""
        if (session := self._sessions.pop(name, None)) is not None:
            task = asyncio.create_task(session.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


async def _unless_gone(waiting: Any, request: Request) -> Message | None:
    """What is waited for; `None` if the client leaves first."""
    got, gone = asyncio.ensure_future(waiting), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({got, gone}, return_when=asyncio.FIRST_COMPLETED)
        return got.result() if got.done() else None
    except ClientDisconnect:
        return None
    finally:
        got.cancel()
        gone.cancel()


def _mismatch(message: Message, headers: Mapping[str, str]) -> str:
    """Why the headers do not fit the body, which the stateless era wants them to."""
    params = wire.params_of(message)
    wanted = wire.headers_for(str(message.get("method")), params) if wire.is_stateless(params) else {}
    wrong = [name for name, value in wanted.items() if headers.get(name) != value]
    return f"the headers do not fit the message: {', '.join(wrong)}" if wrong else ""


def _event(message: Message) -> bytes:
    return b"event: message\ndata: " + wire.encode_message(message) + b"\n"


def _answer(message: Message, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(wire.encode_message(message), status, {**(headers or {}), "content-type": "application/json"})


def _refused(status: int, why: str, headers: Mapping[str, str] | None = None) -> Response:
    return _answer(wire.error(None, wire.INVALID_REQUEST, why), status, headers)
