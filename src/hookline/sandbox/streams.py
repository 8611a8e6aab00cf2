"""Many connections in one thread, and what they say as far as it must be read.

Each connection is a generator that yields what it waits for. Read are TLS's first message and the heads of HTTP
requests; all else is handed on as it comes.
"""

from __future__ import annotations

import _socket
import select
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import NoReturn, TypeVar

    T = TypeVar("T")
    Steps = Generator[tuple[int, int, float] | "Generator[object, None, None]" | None, None, T]
    """What runs here: it yields a descriptor, `IN` or `OUT` and a deadline (0: none); another that is to end; None for
    a turn."""

IN, OUT = select.EPOLLIN, select.EPOLLOUT
_ENDED = select.EPOLLHUP | select.EPOLLERR
_PATIENCE = 30.0
_PIECE = 1 << 17
_MOST_HEAD, _MOST_HELLO = 1 << 16, 1 << 15
_METHODS = tuple(b"GET |POST |PUT |HEAD |PATCH |DELETE |OPTIONS |CONNECT |TRACE |PRI ".split(b"|"))
_HANDSHAKE, _SERVER_NAME = 22, 0


class Scheduler:
    """Runs generators until each of them ends."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._waiting: dict[int, dict[int, tuple[Steps[None], float]]] = {}
        self._ready: deque[Steps[None]] = deque()
        self._running: dict[object, list[Steps[None]]] = {}
        """Each with those that wait for its end."""

    def start(self, steps: Steps[None]) -> None:
        """Run one more."""
        self._running[steps] = []
        self._ready.append(steps)

    def run(self) -> NoReturn:
        """Run for ever; each second, those that have waited too long get a TimeoutError."""
        checked = time.monotonic()
        while True:
            for _ in range(len(self._ready)):
                self._advance(self._ready.popleft())
            for fd, events in self._poll.poll(0 if self._ready else 1):
                self._wake(fd, events)
            if time.monotonic() - checked > 1:
                checked = time.monotonic()
                self._expire(checked)

    def _advance(self, steps: Steps[None], problem: Exception | None = None) -> None:
        try:
            wanted = next(steps) if problem is None else steps.throw(problem)
        except StopIteration:
            self._ready.extend(self._running.pop(steps))
            return
        if isinstance(wanted, tuple):
            fd, event, deadline = wanted
            rows = self._waiting.setdefault(fd, {})
            rows[event] = (steps, deadline)
            if len(rows) == 1:
                self._poll.register(fd, event)
            else:
                self._poll.modify(fd, IN | OUT)
        else:
            self._running.get(wanted, self._ready).append(steps)

    def _wake(self, fd: int, events: int) -> None:
        rows = self._waiting[fd]
        for event in [event for event in rows if events & (event | _ENDED)]:
            self._ready.append(rows.pop(event)[0])
        self._rearm(fd, rows)

    def _rearm(self, fd: int, rows: dict[int, tuple[Steps[None], float]]) -> None:
        if rows:
            self._poll.modify(fd, next(iter(rows)))
        else:
            del self._waiting[fd]
            self._poll.unregister(fd)

    def _expire(self, now: float) -> None:
        for fd, rows in list(self._waiting.items()):
            late = [event for event, (_, deadline) in rows.items() if 0 < deadline < now]
            gone = [rows.pop(event)[0] for event in late]
            if gone:
                self._rearm(fd, rows)
            for steps in gone:
                self._advance(steps, TimeoutError("it took too long"))


class RefusedConnection(Exception):
    """Why a connection may not go on."""


class Stream:
    """A connection without waiting: what cannot be done at once is yielded. `data` is still to be taken."""

    def __init__(self, sock: _socket.socket) -> None:
        self.sock: _socket.socket = sock
        self.data: bytes = b""
        self.over: bool = False
        sock.setblocking(False)

    def recv(self, seconds: float = 0) -> Steps[bytes]:
        """The next bytes; none at the end."""
        if self.data:
            data, self.data = self.data, b""
            return data
        while True:
            try:
                return self.sock.recv(_PIECE)
            except BlockingIOError:
                yield self.sock.fileno(), IN, time.monotonic() + seconds if seconds else 0

    def send(self, data: bytes) -> Steps[None]:
        """Send all of it."""
        left = memoryview(data)
        while left:
            try:
                left = left[self.sock.send(left) :]
            except BlockingIOError:
                yield self.sock.fileno(), OUT, 0

    def fill(self, size: int) -> Steps[bytes]:
        """Wait until so much has come; what has come, which is less only at the end."""
        while len(self.data) < size and not self.over:
            before, self.data = self.data, b""
            piece = yield from self.recv(_PATIENCE)
            self.data, self.over = before + piece, not piece
        return self.data

    def head(self) -> Steps[bytes]:
        """Take everything up to an empty line; nothing at the end."""
        while b"\r\n\r\n" not in self.data:
            if len(self.data) > _MOST_HEAD:
                raise RefusedConnection("the head of a request is too long")
            if self.over or not (yield from self.fill(len(self.data) + 1)):
                return b""
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        return head

    def line(self) -> Steps[bytes]:
        """Take one line, with its end."""
        while b"\r\n" not in self.data:
            if len(self.data) > _MOST_HEAD or self.over:
                raise RefusedConnection("a line of a request has no end")
            yield from self.fill(len(self.data) + 1)
        line, end, self.data = self.data.partition(b"\r\n")
        return line + end

    def copy(self, target: Stream, size: int = 0) -> Steps[None]:
        """Hand on so many bytes, or all until the end."""
        left = size
        while left or not size:
            piece = yield from self.recv()
            if not piece:
                return
            if size:
                piece, self.data = piece[:left], piece[left:]
                left -= len(piece)
            yield from target.send(piece)
            yield None

    def end(self, how: int = _socket.SHUT_WR) -> None:
        """Say that nothing more comes."""
        try:
            self.sock.shutdown(how)
        except OSError:
            return

    def reset(self) -> None:
        """Have the peer see that this is not an orderly end."""
        self.sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.end(_socket.SHUT_RDWR)


def opening(stream: Stream) -> Steps[tuple[str, str]]:
    """How a client begins: `tls` with the name it asks for, `http`, `ssh`, or something else: `raw`."""
    data = yield from stream.fill(1)
    if data[:1] == bytes([_HANDSHAKE]):
        return "tls", (yield from _asked_name(stream))
    while (
        data and len(data) < 8 and any(method.startswith(data) for method in (*_METHODS, b"SSH-")) and not stream.over
    ):
        data = yield from stream.fill(len(data) + 1)
    if data.lstrip(b"\r\n").startswith(_METHODS):
        return "http", ""
    return ("ssh" if data.startswith(b"SSH-") else "raw"), ""


def _asked_name(stream: Stream) -> Steps[str]:
    """The server name in a ClientHello, also in one of several records; empty if there is none."""
    hello, at = b"", 0
    while len(hello) < 4 or len(hello) < 4 + int.from_bytes(hello[1:4], "big"):
        data = yield from stream.fill(at + 5)
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        data = yield from stream.fill(at + 5 + size)
        if (
            data[at : at + 1] != bytes([_HANDSHAKE])
            or len(data) < at + 5 + size
            or len(hello) > _MOST_HELLO
            or not size
        ):
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


def copy_requests(inside: Stream, outside: Stream, edit: Callable[[list[bytes]], list[bytes]]) -> Steps[None]:
    """Hand on HTTP/1.1 requests, each with its head as `edit` returns it and its body as it is."""
    while head := (yield from inside.head()):
        lines = head.lstrip(b"\r\n").split(b"\r\n")
        size, chunked = _body(fields(lines))
        yield from outside.send(b"\r\n".join(edit(lines)) + b"\r\n\r\n")
        if size:
            yield from inside.copy(outside, size)
        while chunked:
            count = yield from inside.line()
            yield from outside.send(count)
            length = _chunk_size(count.partition(b";")[0].strip())
            if length:
                yield from inside.copy(outside, length + 2)
                continue
            while chunked:
                line = yield from inside.line()
                yield from outside.send(line)
                chunked = line != b"\r\n"


def _chunk_size(digits: bytes) -> int:
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise RefusedConnection("the length of a request cannot be told")
    return int(digits, 16)


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
    if (
        method == b"CONNECT"
        or not target.startswith((b"/", b"*"))
        or host.decode("ascii", "replace").lower() not in names
    ):
        shown = (hosts[0] if hosts else target)[:80].decode("ascii", "replace")
        raise RefusedConnection(f"the request is for `{shown}`")
    dropped = (b"upgrade", b"http2-settings")
    return [line for line in lines if line.partition(b":")[0].lower() not in dropped]
