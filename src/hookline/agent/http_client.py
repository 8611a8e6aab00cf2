"""A small HTTP/1.1 client on asyncio's streams, for models and pages of the web: its import costs next to nothing.

    client = HttpClient()
    async with client.exchange("POST", url, headers, body) as answer:
        answer.status, answer.headers
        async for piece in answer.pieces(): …

Whatever goes wrong on the way is an `OSError`. Redirects are the caller's business. Proxies are those of `HTTPS_PROXY`,
`HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; certificates those of the system, of `SSL_CERT_FILE` and of
`NODE_EXTRA_CA_CERTS`.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import os
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

__all__ = ["HttpClient", "ServerAnswer"]

PORTS = {"http": 80, "https": 443}
MOST_HEADER_BYTES = 1 << 18
PIECE = 1 << 16
#: seconds to reach a server, and to hear the next piece from it
TO_CONNECT, TO_READ = 15.0, 600.0
#: windows of zlib that read gzip, zlib and raw deflate
WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
NO_BODY = (204, 304)


class Place(NamedTuple):
    """Who is asked: connections to the same one can be used again."""

    scheme: str
    host: str
    port: int
    #: the address to connect to in place of the name, if the caller has looked it up
    address: str | None = None


@dataclass
class Wire:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: bool = False
    #: closes it as its event loop ends
    life: AsyncGenerator[None, None] | None = None

    def close(self) -> None:
        with suppress(RuntimeError):  # its event loop has ended, and it with it
            self.writer.close()

    async def live(self) -> AsyncGenerator[None, None]:
        """A loop ends its generators before it ends itself, so that no connection outlives its loop."""
        try:
            yield
        finally:
            self.close()

    @property
    def usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())


@dataclass
class ServerAnswer:
    """A server's answer: status and headers (names in small letters) at once, the body while it arrives."""

    status: int
    headers: Mapping[str, str]
    _wire: Wire
    _read_limit: float
    _done: bool = field(default=False, init=False)

    @property
    def reusable(self) -> bool:
        """Whether the connection can carry another request."""
        return self._done and self.headers.get("connection", "").lower() != "close" and self._wire.usable

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, decompressed; raises `ConnectionError` if it ends too early."""
        window = WINDOWS.get(self.headers.get("content-encoding", "").strip().lower())
        inflate = zlib.decompressobj(window) if window else None
        async for piece in self._raw():
            try:
                yield inflate.decompress(piece) if inflate else piece
            except zlib.error as problem:
                raise ConnectionError(f"the body cannot be decompressed: {problem}") from None
        if inflate:
            yield inflate.flush()

    async def read(self, most: int) -> bytes:
        """The body, up to so many bytes; what is longer is cut off there."""
        body = bytearray()
        async for piece in self.pieces():
            body += piece
            if len(body) > most:
                return bytes(body[:most])
        return bytes(body)

    async def _raw(self) -> AsyncIterator[bytes]:
        length = self.headers.get("content-length", "")
        if self.status in NO_BODY:
            self._done = True
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            async for piece in self._chunks():
                yield piece
        elif length.isdigit():
            async for piece in self._exactly(int(length)):
                yield piece
            self._done = True
        else:
            while piece := await self._timed(self._wire.reader.read(PIECE)):
                yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            line = (await self._line()).partition(b";")[0].strip()
            try:
                size = int(line, 16)
            except ValueError:
                raise ConnectionError("the server's chunks cannot be told apart") from None
            if size == 0:
                break
            async for piece in self._exactly(size):
                yield piece
            await self._line()
        while await self._line():
            pass
        self._done = True

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size > 0:
            piece = await self._timed(self._wire.reader.read(min(PIECE, size)))
            if not piece:
                raise ConnectionError("the connection ended before the answer did")
            size -= len(piece)
            yield piece

    async def _line(self) -> bytes:
        line: bytes = await self._timed(_line(self._wire.reader))
        return line

    async def _timed(self, reading: Any) -> Any:
        return await _within(self._read_limit, reading, "heard nothing more")


class HttpClient:
    """Asks servers, one request on a connection at a time; a connection is kept for the next request."""

    def __init__(self, *, to_connect: float = TO_CONNECT, to_read: float = TO_READ) -> None:
        self._to_connect, self._to_read = to_connect, to_read
        self._kept: dict[tuple[asyncio.AbstractEventLoop, Place], Wire] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that were kept."""
        for wire in self._kept.values():
            wire.close()
        self._kept.clear()

    @asynccontextmanager
    async def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, address: str | None = None
    ) -> AsyncIterator[ServerAnswer]:
        """Ask; with `address`, that machine is asked, whatever the name in `url` leads to by now."""
        parts, place = parse_address(url, address)
        proxy = None if address else proxy_for(place)
        request = _head(f"{method} {_target(parts, place, proxy)} HTTP/1.1", place, headers, body, proxy) + body
        key = (asyncio.get_running_loop(), place)
        wire = self._kept.pop(key, None)
        if wire is not None and not wire.usable:
            wire.close()
            wire = None
        try:
            try:
                wire = wire or await self._connect(place, proxy)
                answer = await self._ask(wire, request)
            except (ConnectionError, asyncio.IncompleteReadError):
                if wire is None or not wire.used:
                    raise
                wire.close()  # the server had closed it as we used it: it has not been heard
                wire = await self._connect(place, proxy)
                answer = await self._ask(wire, request)
            yield answer
            if answer.reusable and key not in self._kept:
                await self._keep(key, wire)
                wire = None
        except asyncio.IncompleteReadError:
            raise ConnectionError("the connection ended before the answer did") from None
        finally:
            if wire is not None:
                wire.close()

    async def _keep(self, key: tuple[asyncio.AbstractEventLoop, Place], wire: Wire) -> None:
        """Have the connection for the next request; those of loops that have ended are forgotten."""
        self._kept = {one: kept for one, kept in self._kept.items() if not one[0].is_closed()}
        if wire.life is None:
            wire.life = wire.live()
            await anext(wire.life)
        wire.used = True
        self._kept[key] = wire

    async def _ask(self, wire: Wire, request: bytes) -> ServerAnswer:
        wire.writer.write(request)
        await _within(self._to_read, wire.writer.drain(), "the server does not listen")
        while True:
            status, headers = await _within(self._to_read, _answer_head(wire.reader), "got no answer")
            if status >= 200:  # 1xx only announces
                return ServerAnswer(status, headers, wire, self._to_read)

    async def _connect(self, place: Place, proxy: SplitResult | None) -> Wire:
        wire: Wire = await _within(self._to_connect, _connected(place, proxy), "the server does not answer")
        return wire


async def _connected(place: Place, proxy: SplitResult | None) -> Wire:
    tls = _tls() if place.scheme == "https" else None
    if proxy is None:
        name = place.host if tls else None
        host = place.address or place.host
        return Wire(*await asyncio.open_connection(host, place.port, ssl=tls, server_hostname=name, limit=PIECE))
    outer = _tls() if proxy.scheme == "https" else None
    port = proxy.port or PORTS.get(proxy.scheme, 80)
    wire = Wire(*await asyncio.open_connection(proxy.hostname, port, ssl=outer, limit=PIECE))
    if tls is not None:
        try:
            await _tunnel(wire, place, proxy, tls)
        except BaseException:
            wire.close()
            raise
    return wire


async def _tunnel(wire: Wire, place: Place, proxy: SplitResult, tls: ssl.SSLContext) -> None:
    target = _authority(place, always=True)
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}", *_proxy_credentials(proxy)]
    wire.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    status, _ = await _answer_head(wire.reader)
    if status != 200:
        raise ConnectionError(f"proxy {proxy.hostname} refused the connection with status {status}")
    await wire.writer.start_tls(tls, server_hostname=place.host)


async def _answer_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers; a name that occurs twice has both values."""
    first = (await _line(reader)).split(None, 2)
    if len(first) < 2 or not first[0].startswith(b"HTTP/1.") or not first[1].isdigit():
        raise ConnectionError("the server does not speak HTTP/1.1")
    headers: dict[str, str] = {}
    size = 0
    while line := await _line(reader):
        size += len(line)
        if size > MOST_HEADER_BYTES:
            raise ConnectionError("the server's headers have no end")
        name, _, value = line.decode("latin-1").partition(":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(first[1]), headers


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\n")).rstrip(b"\r\n")
    except asyncio.LimitOverrunError:
        raise ConnectionError("the server sends a line without an end") from None


async def _within(seconds: float, work: Any, what: str) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise ConnectionError(f"{what} within {seconds:g} s") from None


# -- what is asked -----------------------------------------------------------------------------------------------


def parse_address(url: str, address: str | None = None) -> tuple[SplitResult, Place]:
    """The parts of an address, and whom to ask; raises `ValueError` for one that is not http or https."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"`{url}` is not an http or https address")
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode("ascii")
    return parts, Place(parts.scheme, host, parts.port or PORTS[parts.scheme], address)


def proxy_for(place: Place) -> SplitResult | None:
    """The proxy that the environment names for this server."""
    proxies = getproxies_environment()
    stated = proxies.get(place.scheme) or proxies.get("all")
    if not stated or proxy_bypass_environment(f"{place.host}:{place.port}", proxies):
        return None
    parts = urlsplit(stated if "://" in stated else f"http://{stated}")
    if parts.scheme not in PORTS or not parts.hostname:
        raise ConnectionError(f"proxy `{stated}` is not an http or https address")
    return parts


def _target(parts: SplitResult, place: Place, proxy: SplitResult | None) -> str:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.isascii() or " " in target:
        raise ValueError(f"`{target}` has a space or a letter that HTTP does not know")
    tunnelled = proxy is None or place.scheme == "https"
    return target if tunnelled else f"http://{_authority(place)}{target}"  # such a proxy is asked for the whole address


def _head(first: str, place: Place, headers: Mapping[str, str], body: bytes, proxy: SplitResult | None) -> bytes:
    given = {"host": _authority(place), "accept-encoding": "gzip, deflate", **headers}
    if body:
        given["content-length"] = str(len(body))
    lines = [first, *(f"{name}: {value}" for name, value in given.items())]
    if proxy is not None and place.scheme == "http":
        lines += _proxy_credentials(proxy)
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a line break in a header of an HTTP request")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _authority(place: Place, *, always: bool = False) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    return host if place.port == PORTS[place.scheme] and not always else f"{host}:{place.port}"


def _proxy_credentials(proxy: SplitResult) -> list[str]:
    if not proxy.username:
        return []
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [f"proxy-authorization: Basic {base64.b64encode(pair.encode()).decode()}"]


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"] and not ssl.get_default_verify_paths().capath:
        with suppress(ImportError):  # a Python that came without certificates
            context.load_verify_locations(importlib.import_module("certifi").where())
    if extra := os.environ.get("NODE_EXTRA_CA_CERTS"):
        context.load_verify_locations(extra)
    return context
