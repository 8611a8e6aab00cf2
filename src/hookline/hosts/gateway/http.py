"""A server at an address (streamable HTTP): one POST a message, answered by JSON or by a stream of events.

The headers of the stateless era are made from the message that is sent, so that they fit a call that a hook rewrote.
A redirect is an error, as it would take the headers elsewhere. Without a package: `urllib`, in threads.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from hookline.errors import ConfigError, EventError
from hookline.hosts.gateway.messages import (
    INTERNAL_ERROR,
    VERSION,
    Id,
    Message,
    encode_message,
    error,
    id_of,
    meta_of,
    params_of,
    read_messages,
)  # fmt: skip

MOST_BYTES = 128 * 1024 * 1024
_SECONDS = 600.0
_LOCAL = ("localhost", "127.0.0.1", "::1")
_NAMED = ("tools/call", "prompts/get", "resources/read")


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


class ServerAddress:
    """A server that is reached over HTTP."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(url, "expected an address that begins with `https://` or `http://`")
        if headers and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise ConfigError(url, "headers are not sent in the clear; use `https://`")
        self._url, self._headers = url, dict(headers)
        self._open = build_opener(_NoRedirect).open
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[Message | None] = asyncio.Queue()
        self._session = self._version = ""
        self._parameters: dict[str, list[tuple[tuple[str, ...], str]]] = {}

    async def send(self, message: Message) -> None:
        """Post it; the answer to a request is received when it comes, the rest is posted in order."""
        if message.get("method") and "id" in message:
            threading.Thread(target=self._post, args=(message,), daemon=True).start()
            return
        await asyncio.to_thread(self._post, message)
        if message.get("method") == "notifications/initialized" and self._session:
            threading.Thread(target=self._listen, daemon=True).start()

    async def receive(self) -> AsyncIterator[Message]:
        """What the server sends, in answers and in streams."""
        while (message := await self._received.get()) is not None:
            yield message

    async def close(self) -> str:
        """Stop to receive."""
        self._received.put_nowait(None)
        return "the connection is closed"

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
        problem = "the server gave no answer"
        try:
            request = Request(self._url, encode_message(message), self._headers_for(message), method="POST")  # noqa: S310 - the scheme was looked at
            with self._open(request, timeout=_SECONDS) as response:
                self._session = response.headers.get("mcp-session-id") or self._session
                if self._read(response, response.headers.get("content-type", ""), key):
                    return
        except HTTPError as refused:
            problem = f"the server answered with HTTP status {refused.code}"
            with refused, contextlib.suppress(OSError, EventError):
                if self._read(refused, "application/json", key):
                    return
        except (OSError, EventError, ValueError) as failed:
            problem = f"the server cannot be reached: {failed}"
        if key is not None:
            self._hand(error(key, INTERNAL_ERROR, problem))

    def _listen(self) -> None:
        """Receive what the server sends by itself; one that has no such stream says so, and that is all."""
        headers = {**self._headers, "accept": "text/event-stream", "mcp-session-id": self._session}
        request = Request(self._url, headers={**headers, "mcp-protocol-version": self._version})  # noqa: S310 - the scheme was looked at
        with contextlib.suppress(OSError, EventError), self._open(request, timeout=_SECONDS) as response:
            self._read(response, "text/event-stream", None)

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
        version = meta_of(params).get(VERSION)
        if not isinstance(version, str):
            return made | ({"mcp-protocol-version": self._version} if self._version else {})
        made |= {"mcp-protocol-version": version, "mcp-method": method}
        if method in _NAMED:
            made["mcp-name"] = _header(params.get("name", params.get("uri", "")))
        for path, name in self._parameters.get(str(params.get("name")), ()) if method == "tools/call" else ():
            value: Any = params.get("arguments")
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                made[f"mcp-param-{name}"] = _header(value)
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


def _header(value: Any) -> str:
    """A value as a header; what a header cannot hold is encoded."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="
