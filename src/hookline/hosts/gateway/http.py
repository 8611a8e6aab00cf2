"""A server at an address (streamable HTTP): one POST a message, answered by JSON or by a stream of events.

The headers of the stateless era are made from the message that is sent, so that they fit a call that a hook rewrote.
A redirect is an error, as it would take the headers elsewhere.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from hookline.errors import ConfigError, EventError, extra
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.messages import Id, Message
from hookline.hosts.gateway.pins import definitions_in

with extra("a server at an address", "agent"):
    import httpx2

_SECONDS = 600.0
_LAST_SECONDS = 5.0
_OF_LOGIN = (401, 403)
_LOCAL = ("localhost", "127.0.0.1", "::1")


class ServerAddress:
    """A server that is reached over HTTP."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(url, "expected an address that begins with `https://` or `http://`")
        if headers and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise ConfigError(url, "headers are not sent in the clear; use `https://`")
        self._url, self._headers = url, dict(headers)
        self._client = httpx2.AsyncClient(timeout=_SECONDS, limits=httpx2.Limits(max_connections=None))
        self._received: asyncio.Queue[Message | None] = asyncio.Queue()
        self._session = self._version = ""
        self._parameters: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._under_way: dict[Id | None, asyncio.Task[None]] = {}

    async def send(self, message: Message) -> None:
        """Post it; the answer to a request is received when it comes, the rest is posted in order."""
        method, key = message.get("method"), wire.id_of(message)
        if method and "id" in message:
            self._start(key, self._post(message, key))
        elif method == "notifications/cancelled" and not self._version:
            gone = self._under_way.get(wire.id_of(wire.params_of(message), "requestId"))
            if gone is not None:
                gone.cancel()  # hanging up is how the stateless era says it
        else:
            await self._post(message, None)
            if method == "notifications/initialized" and self._session:
                self._start(None, self._listen())

    def _start(self, key: Id | None, work: Coroutine[Any, Any, None]) -> None:
        self._under_way[key] = task = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._under_way.pop(key, None))

    async def receive(self) -> AsyncIterator[Message]:
        while (message := await self._received.get()) is not None:
            yield message

    async def close(self) -> str:
        """End the session, where there is one, and stop to receive."""
        if self._session:
            headers = {**self._headers, "mcp-session-id": self._session}
            self._session = ""
            with contextlib.suppress(httpx2.HTTPError):
                await self._client.delete(self._url, headers=headers, timeout=_LAST_SECONDS)
        for task in list(self._under_way.values()):
            task.cancel()
        await self._client.aclose()
        self._received.put_nowait(None)
        return "the connection is closed"

    def _hand(self, message: Message) -> None:
        found = message.get("result")
        if isinstance(found, dict):
            self._version = str(found.get("protocolVersion") or self._version)
            for name, tool in definitions_in(found):
                self._parameters[name] = list(_header_parameters(tool.get("inputSchema"), ()))
        self._received.put_nowait(message)

    async def _post(self, message: Message, key: Id | None) -> None:
        """Make a request and hand on what comes back; one that is not answered fails."""
        content, headers = wire.encode_message(message), self._headers_for(message)
        try:
            async with self._client.stream("POST", self._url, content=content, headers=headers) as response:
                problem = _problem(key, response)
                if response.is_success:
                    self._session = response.headers.get("mcp-session-id") or self._session
                with contextlib.suppress(*(() if response.is_success else (EventError,))):
                    if await self._read(response, key):
                        return
        except (httpx2.HTTPError, EventError, ValueError) as failed:
            problem = wire.error(key, wire.INTERNAL_ERROR, f"the server cannot be reached: {failed}")
        if key is not None:
            self._hand(problem)

    async def _listen(self) -> None:
        """Receive what the server sends by itself; one that has no such stream says so, and that is all."""
        headers = {**self._headers, "accept": "text/event-stream", "mcp-session-id": self._session}
        headers["mcp-protocol-version"] = self._version
        with contextlib.suppress(httpx2.HTTPError, EventError):
            async with self._client.stream("GET", self._url, headers=headers) as response:
                await self._read(response, None)

    async def _read(self, response: httpx2.Response, key: Id | None) -> bool:
        """Hand on what a body holds; whether the request was answered."""
        is_answered = False
        async for data in _bodies(response):
            for message in wire.read_messages(data) if data.strip() else ():
                is_answered |= "method" not in message and wire.id_of(message) == key
                self._hand(message)
        return is_answered

    def _headers_for(self, message: Message) -> dict[str, str]:
        params, method = wire.params_of(message), str(message.get("method", ""))
        made = {"content-type": "application/json", "accept": "application/json, text/event-stream", **self._headers}
        if self._session:
            made["mcp-session-id"] = self._session
        if not wire.is_stateless(params):
            return made | ({"mcp-protocol-version": self._version} if self._version else {})
        made |= wire.headers_for(method, params)
        for path, name in self._parameters.get(str(params.get("name")), ()) if method == "tools/call" else ():
            value: Any = params.get("arguments")
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                made[f"mcp-param-{name}"] = wire.as_header(value)
        return made


def _problem(key: Id | None, response: httpx2.Response) -> Message:
    """A status in place of an answer; one that asks for a login says how, for those who can log in."""
    status = response.status_code
    if response.is_success:
        return wire.error(key, wire.INTERNAL_ERROR, "the server gave no answer")
    made = wire.error(key, wire.INTERNAL_ERROR, f"the server answered with HTTP status {status}")
    if status in _OF_LOGIN:
        made["error"]["message"] += "; give it a token with `--header Authorization=VARIABLE`"
        made["error"]["data"] = {"status": status, "login": response.headers.get("www-authenticate", "")}
    return made


async def _bodies(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The data of each event in a stream, or the one body; what is longer than a message may be is an error."""
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream":
        async for event in httpx2.EventSource(response, max_event_size=wire.MOST_BYTES):
            yield event.data.encode()
        return
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > wire.MOST_BYTES:
            raise EventError(f"the server sent a message of more than {wire.MOST_BYTES} bytes")
    yield bytes(body)


def _header_parameters(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The arguments that are sent as headers too, as a tool's schema says (`x-mcp-header`)."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if isinstance(part, dict) and isinstance(part.get("x-mcp-header"), str):
            yield (*path, name), part["x-mcp-header"]
        yield from _header_parameters(part, (*path, name))
