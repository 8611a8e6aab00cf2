"""A server at an address (streamable HTTP): one POST a message, answered by JSON or by a stream of events.

The headers of the stateless era are made from the message that is sent, so that they fit a call that a hook rewrote.
A redirect is an error, as it would take the headers elsewhere. Without a package: `http.client`, in threads.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import select
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import IO, Any
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from hookline.errors import ConfigError, EventError
from hookline.hosts.gateway.messages import (
    INTERNAL_ERROR,
    VERSION,
    Id,
    Message,
    encode_message,
    error,
    id_of,
    is_stateless,
    meta_of,
    params_of,
    read_messages,
)  # fmt: skip

MOST_BYTES = 128 * 1024 * 1024
_SECONDS = 600.0
_LAST_SECONDS = 5.0
_REFUSED, _OF_LOGIN = 300, (401, 403)
_LOCAL = ("localhost", "127.0.0.1", "::1")
NAMED = ("tools/call", "prompts/get", "resources/read")
"""The requests whose `name` or `uri` is in a header, too."""


class Connections:
    """Connections to one address, through the proxy that the environment names; one that is free is used again."""

    def __init__(self, url: SplitResult) -> None:
        proxies = {} if proxy_bypass(url.hostname or "") else getproxies()
        proxy = urlsplit(proxies[url.scheme]) if url.scheme in proxies else None
        self._url, self._proxy = url, proxy
        self._is_https = url.scheme == "https"
        path = f"{url.path or '/'}{'?' * bool(url.query)}{url.query}"
        self.target: str = f"http://{url.netloc}{path}" if proxy and not self._is_https else path
        self._free: list[HTTPConnection] = []

    def take(self) -> HTTPConnection:
        """One that is not in use; what the other side closed meanwhile is not used again."""
        while self._free:
            found = self._free.pop()
            if found.sock is not None and not select.select([found.sock], [], [], 0)[0]:
                return found
            found.close()
        return self._connect()

    def give(self, connection: HTTPConnection, response: HTTPResponse | None) -> None:
        """Keep it, if its answer was read to the end."""
        if response is not None and response.isclosed() and not response.will_close:
            self._free.append(connection)
        else:
            connection.close()

    def _connect(self) -> HTTPConnection:
        at = self._proxy or self._url
        port = at.port or (443 if at.scheme == "https" else 80)
        secure = {"context": ssl.create_default_context()} if self._is_https else {}
        kind: Any = HTTPSConnection if self._is_https else HTTPConnection
        made: HTTPConnection = kind(at.hostname, port, timeout=_SECONDS, **secure)
        if self._proxy is not None and self._is_https:
            user = f"{unquote(at.username or '')}:{unquote(at.password or '')}"
            login = {"Proxy-Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if at.username else {}
            made.set_tunnel(self._url.hostname or "", self._url.port or 443, login)
        return made


class ServerAddress:
    """A server that is reached over HTTP."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(url, "expected an address that begins with `https://` or `http://`")
        if headers and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise ConfigError(url, "headers are not sent in the clear; use `https://`")
        self._headers = dict(headers)
        self._connections = Connections(parts)
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[Message | None] = asyncio.Queue()
        self._session = self._version = ""
        self._parameters: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._under_way: dict[Id | None, HTTPConnection] = {}

    async def send(self, message: Message) -> None:
        """Post it; the answer to a request is received when it comes, the rest is posted in order."""
        if message.get("method") and "id" in message:
            threading.Thread(target=self._post, args=(message,), daemon=True).start()
            return
        if message.get("method") == "notifications/cancelled" and not self._version:
            self._hang_up(id_of(params_of(message), "requestId"))  # which is how the stateless era says it
            return
        await asyncio.to_thread(self._post, message)
        if message.get("method") == "notifications/initialized" and self._session:
            threading.Thread(target=self._listen, daemon=True).start()

    async def receive(self) -> AsyncIterator[Message]:
        """What the server sends, in answers and in streams."""
        while (message := await self._received.get()) is not None:
            yield message

    async def close(self) -> str:
        """End the session, where there is one, and stop to receive."""
        if self._session:
            session, self._session = self._session, ""
            gone = asyncio.to_thread(self._exchange, "DELETE", None, {**self._headers, "mcp-session-id": session})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(gone, _LAST_SECONDS)
        for key in list(self._under_way):
            self._hang_up(key)
        self._received.put_nowait(None)
        return "the connection is closed"

    def _hang_up(self, key: Id | None) -> None:
        connection = self._under_way.pop(key, None)
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _hand(self, message: Message) -> None:
        found = message.get("result")
        if isinstance(found, dict):
            self._version = str(found.get("protocolVersion") or self._version)
            for tool in found.get("tools") or ():
                if isinstance(tool, dict):
                    self._parameters[str(tool.get("name"))] = list(_header_parameters(tool.get("inputSchema"), ()))
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._received.put_nowait, message)

    def _post(self, message: Message) -> None:
        key = id_of(message) if message.get("method") else None
        problem = self._exchange("POST", message, self._headers_for(message), key)
        if key is not None and problem is not None:
            self._hand(problem)

    def _listen(self) -> None:
        """Receive what the server sends by itself; one that has no such stream says so, and that is all."""
        headers = {**self._headers, "accept": "text/event-stream", "mcp-session-id": self._session}
        self._exchange("GET", None, {**headers, "mcp-protocol-version": self._version})

    def _exchange(
        self, method: str, message: Message | None, headers: Mapping[str, str], key: Id | None = None
    ) -> Message | None:
        """Make a request and hand on what comes back; what to tell the client if its request was not answered."""
        response: HTTPResponse | None = None
        connection = self._connections.take()
        self._under_way[key] = connection
        try:
            body = None if message is None else encode_message(message)
            connection.request(method, self._connections.target, body, dict(headers))
            response = connection.getresponse()
            kind = response.headers.get("content-type", "")
            is_fine = response.status < _REFUSED
            self._session = (response.headers.get("mcp-session-id") or self._session) if is_fine else self._session
            if self._read(response, kind if is_fine else "application/json", key):
                return None
            return _problem(key, "the server gave no answer") if is_fine else _refusal(key, response)
        except (OSError, EventError, ValueError, HTTPException) as failed:
            if response is not None and response.status >= _REFUSED:
                return _refusal(key, response)
            return _problem(key, f"the server cannot be reached: {failed}")
        finally:
            self._under_way.pop(key, None)
            self._connections.give(connection, response)

    def _read(self, body: IO[bytes], kind: str, key: Id | None) -> bool:
        """Hand on what a body holds; whether the request was answered."""
        is_answered = False
        for data in _events(body) if "event-stream" in kind else (body.read(MOST_BYTES),):
            for message in read_messages(data) if data.strip() else ():
                is_answered |= "method" not in message and id_of(message) == key
                self._hand(message)
        return is_answered

    def _headers_for(self, message: Message) -> dict[str, str]:
        params, method = params_of(message), str(message.get("method", ""))
        made = {"content-type": "application/json", "accept": "application/json, text/event-stream", **self._headers}
        if self._session:
            made["mcp-session-id"] = self._session
        if not is_stateless(params):
            return made | ({"mcp-protocol-version": self._version} if self._version else {})
        made |= {"mcp-protocol-version": str(meta_of(params)[VERSION]), "mcp-method": method}
        if method in NAMED:
            made["mcp-name"] = as_header(params.get("name", params.get("uri", "")))
        for path, name in self._parameters.get(str(params.get("name")), ()) if method == "tools/call" else ():
            value: Any = params.get("arguments")
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                made[f"mcp-param-{name}"] = as_header(value)
        return made


def _problem(key: Id | None, text: str) -> Message:
    return error(key, INTERNAL_ERROR, text)


def _refusal(key: Id | None, response: HTTPResponse) -> Message:
    """A status in place of an answer; one that asks for a login says how, for those who can log in."""
    made = _problem(key, f"the server answered with HTTP status {response.status}")
    if response.status in _OF_LOGIN:
        made["error"]["message"] += "; give it a token with `--header Authorization=VARIABLE`"
        made["error"]["data"] = {"status": response.status, "login": response.headers.get("www-authenticate", "")}
    return made


def _events(body: IO[bytes]) -> Iterator[bytes]:
    """The data of each event in a stream."""
    data: list[bytes] = []
    for line in iter(lambda: body.readline(MOST_BYTES), b""):
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data.append(text[5:])
        elif not text and data:
            yield b"\n".join(data)
            data = []


def _header_parameters(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The arguments that are sent as headers too, as a tool's schema says (`x-mcp-header`)."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if isinstance(part, dict) and isinstance(part.get("x-mcp-header"), str):
            yield (*path, name), part["x-mcp-header"]
        yield from _header_parameters(part, (*path, name))


def as_header(value: Any) -> str:
    """A value as a header; what a header cannot hold is encoded."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="
