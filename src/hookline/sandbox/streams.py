"""Connections, and what is said on them as far as it must be read.

Read are TLS's first message and the heads of HTTP requests; all else is handed on as it comes.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

_PATIENCE = 30.0
_PIECE = 1 << 17
_MOST_HEAD, _MOST_HELLO = 1 << 16, 1 << 15
_METHODS = tuple(b"GET |POST |PUT |HEAD |PATCH |DELETE |OPTIONS |CONNECT |TRACE |PRI ".split(b"|"))
_KNOWN = (*_METHODS, b"SSH-")
_HANDSHAKE, _SERVER_NAME = 22, 0


class RefusedConnection(Exception):
    """Why a connection may not go on."""


class Stream:
    """A connection. `data` is still to be taken."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock: socket.socket = sock
        self.data: bytes = b""
        self.over: bool = False
        self._loop = asyncio.get_running_loop()
        sock.setblocking(False)

    async def recv(self, seconds: float | None = None) -> bytes:
        data, self.data = self.data, b""
        return data or await self._read(seconds)

    async def _read(self, seconds: float | None) -> bytes:
        async with asyncio.timeout(seconds):
            return await self._loop.sock_recv(self.sock, _PIECE)

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def fill(self, size: int) -> bytes:
        """Wait until so much has come; what has come, which is less only at the end."""
        while len(self.data) < size and not self.over:
            piece = await self._read(_PATIENCE)
            self.data, self.over = self.data + piece, not piece
        return self.data

    async def head(self) -> bytes:
        """Take everything up to an empty line; nothing at the end."""
        while b"\r\n\r\n" not in self.data:
            if len(self.data) > _MOST_HEAD:
                raise RefusedConnection("the head of a request is too long")
            if self.over or not (await self.fill(len(self.data) + 1)):
                return b""
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        return head

    async def line(self) -> bytes:
        while b"\r\n" not in self.data:
            if len(self.data) > _MOST_HEAD or self.over:
                raise RefusedConnection("a line of a request has no end")
            await self.fill(len(self.data) + 1)
        line, end, self.data = self.data.partition(b"\r\n")
        return line + end

    async def copy(self, target: "Stream", size: int = 0) -> None:
        """Hand on so many bytes, or all until the end."""
        left = size
        while left or not size:
            piece = await self.recv()
            if not piece:
                return
            if size:
                piece, self.data = piece[:left], piece[left:]
                left -= len(piece)
            await target.send(piece)
            await asyncio.sleep(0)  # the others' turn

    def end(self, how: int = socket.SHUT_WR) -> None:
        with suppress(OSError):
            self.sock.shutdown(how)

    def reset(self) -> None:
        """Have the peer see that this is not an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.end(socket.SHUT_RDWR)


class TlsStream(Stream):
    """TLS on a connection: two tasks may read and write it in turn."""

    def __init__(
        self, under: Stream, context: ssl.SSLContext, name: str | None = None, *, server: bool = False
    ) -> None:
        self._under, self._sends = under, False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server, server_hostname=name)
        super().__init__(under.sock)

    async def shake_hands(self) -> None:
        """Begin; ssl.SSLError if the peer cannot be trusted."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._more()
        await self._flush()

    async def _read(self, seconds: float | None) -> bytes:
        while True:
            try:
                return self._tls.read(1 << 16)
            except ssl.SSLWantReadError:
                if not await self._more(seconds):
                    return b""

    async def send(self, data: bytes) -> None:
        if data:
            self._tls.write(data)
        await self._flush()

    async def _more(self, seconds: float | None = None) -> bool:
        await self._flush()
        data = await self._under.recv(seconds)
        self._incoming.write(data)
        if not data:
            self._incoming.write_eof()
        return bool(data)

    async def _flush(self) -> None:
        """Send what TLS has made, in its order; one that sends already sends this, too."""
        if self._sends:
            return
        self._sends = True
        try:
            while data := self._outgoing.read():
                await self._under.send(data)
        finally:
            self._sends = False


class HostStream(TlsStream):
    """A host's side: where it repeats a real token, its placeholder is read, also across pieces."""

    def __init__(self, under: Stream, context: ssl.SSLContext, name: str, pairs: list[tuple[bytes, bytes]]) -> None:
        super().__init__(under, context, name)
        self._pairs, self._kept = pairs, b""

    async def _read(self, seconds: float | None) -> bytes:
        while True:
            piece = await super()._read(seconds)
            data, self._kept = self._kept + piece, b""
            for shown, real in self._pairs:
                data = data.replace(real, shown)
            if not piece:
                return data
            ends = [size for _, real in self._pairs for size in range(1, len(real)) if data.endswith(real[:size])]
            if ends:
                data, self._kept = data[: -max(ends)], data[-max(ends) :]
            if data:
                return data


async def opening(stream: Stream) -> tuple[str, str]:
    """How a client begins: `tls` with the name it asks for, `http`, `ssh`, or something else: `raw`."""
    data = await stream.fill(1)
    if data[:1] == bytes([_HANDSHAKE]):
        return "tls", await _asked_name(stream)
    while data and len(data) < 8 and any(known.startswith(data) for known in _KNOWN) and not stream.over:
        data = await stream.fill(len(data) + 1)
    if data.lstrip(b"\r\n").startswith(_METHODS):
        return "http", ""
    return ("ssh" if data.startswith(b"SSH-") else "raw"), ""


async def _asked_name(stream: Stream) -> str:
    """The server name in a ClientHello, also in one of several records; empty if there is none."""
    hello, at = b"", 0
    while len(hello) < 4 or len(hello) < 4 + int.from_bytes(hello[1:4], "big"):
        data = await stream.fill(at + 5)
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        data = await stream.fill(at + 5 + size)
        if not size or len(data) < at + 5 + size or data[at] != _HANDSHAKE or len(hello) > _MOST_HELLO:
            return ""
        hello, at = hello + data[at + 5 : at + 5 + size], at + 5 + size
    return server_name(hello[4:])


def server_name(hello: bytes) -> str:
    """The name in the body of a ClientHello; empty if there is none, or more than one."""
    at, names = 34, []
    for size in (1, 2, 1):  # session, ciphers, compressions
        at += size + int.from_bytes(hello[at : at + size], "big")
    end = at + 2 + int.from_bytes(hello[at : at + 2], "big")
    at += 2
    while at + 4 <= min(end, len(hello)):
        kind, size = int.from_bytes(hello[at : at + 2], "big"), int.from_bytes(hello[at + 2 : at + 4], "big")
        if kind == _SERVER_NAME:
            entry = hello[at + 4 : at + 4 + size]
            length = int.from_bytes(entry[3:5], "big")
            names.append(entry[5:].decode("ascii", "replace").lower() if len(entry) == 5 + length else "")
        at += 4 + size
    return names[0] if len(names) == 1 else ""


async def copy_requests(inside: Stream, outside: Stream, edit: Callable[[list[bytes]], list[bytes]]) -> None:
    """Hand on HTTP/1.1 requests, each with its head as `edit` returns it and its body as it is."""
    while head := await inside.head():
        lines = head.lstrip(b"\r\n").split(b"\r\n")
        size, chunked = _body(fields(lines))
        await outside.send(b"\r\n".join(edit(lines)) + b"\r\n\r\n")
        if size:
            await inside.copy(outside, size)
        while chunked:
            count = await inside.line()
            await outside.send(count)
            digits = count.partition(b";")[0].strip()
            if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise RefusedConnection("the length of a request cannot be told")
            if length := int(digits, 16):
                await inside.copy(outside, length + 2)
                continue
            while chunked:
                line = await inside.line()
                await outside.send(line)
                chunked = line != b"\r\n"


def fields(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    """A head's fields, lower case; what two servers could read differently is refused."""
    found = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.strip() != name or b"\n" in line or b"\r" in line or b"\0" in line:
            raise RefusedConnection("the head of a request cannot be read")
        found.append((name.lower(), value.strip()))
    return found


def _body(found: list[tuple[bytes, bytes]]) -> tuple[int, bool]:
    sizes = [value for name, value in found if name == b"content-length"]
    codings = [value.lower() for name, value in found if name == b"transfer-encoding"]
    if len(sizes) + len(codings) > 1 or any(not size.isdigit() for size in sizes) or codings not in ([], [b"chunked"]):
        raise RefusedConnection("the length of a request cannot be told")
    return int(sizes[0]) if sizes else 0, bool(codings)


def checked_head(lines: list[bytes], names: list[str]) -> list[bytes]:
    """A request's head, if it is for one of these names; without a change of protocol, which could not be followed."""
    method, target, *_ = [*lines[0].split(b" "), b"", b""]  # what is left out is refused below
    hosts = [value for name, value in fields(lines) if name == b"host"]
    host = hosts[0].rpartition(b":")[0] or hosts[0] if len(hosts) == 1 else b""
    is_known = host.decode("ascii", "replace").lower() in names
    if method == b"CONNECT" or not target.startswith((b"/", b"*")) or not is_known:
        shown = (hosts[0] if hosts else target)[:80].decode("ascii", "replace")
        raise RefusedConnection(f"the request is for `{shown}`")
    dropped = (b"upgrade", b"http2-settings")
    return [line for line in lines if line.partition(b":")[0].lower() not in dropped]
