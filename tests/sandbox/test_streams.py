"""What a connection says first, and HTTP requests handed on one by one."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from hookline.sandbox.streams import RefusedConnection, Stream, checked_head, copy_requests, opening


@asynccontextmanager
async def said(data: bytes) -> AsyncIterator[Stream]:
    """A stream of which a client has said this and no more."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        yield Stream(ours)


async def begun(data: bytes) -> tuple[str, str]:
    async with said(data) as stream:
        return await opening(stream)


def hello(name: str | None) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def in_pieces(data: bytes) -> bytes:
    """The same handshake in records of 50 bytes."""
    body = data[5:]
    parts = [body[at : at + 50] for at in range(0, len(body), 50)]
    return b"".join(data[:3] + len(part).to_bytes(2, "big") + part for part in parts)


OPENINGS = {
    hello("pypi.example"): ("tls", "pypi.example"), in_pieces(hello("pypi.example")): ("tls", "pypi.example"),
    hello(None): ("tls", ""), hello("pypi.example")[:60]: ("tls", ""), b"\x16\x03\x01\x00\x00": ("tls", ""),
    b"GET / HTTP/1.1\r\n\r\n": ("http", ""), b"\r\nGET / HTTP/1.1\r\n\r\n": ("http", ""), b"SSH-2.0-x\r\n": ("ssh", ""),
    b"\0\0\0\x08\x04\xd2\x16\x2f": ("raw", ""), b"": ("raw", ""), b"GE": ("raw", ""), b"PRI * HTTP/2.0": ("http", ""),
}  # fmt: skip


async def test_how_clients_begin() -> None:
    """TLS with the name that it asks for, HTTP, ssh, anything else."""
    assert [await begun(data) for data in OPENINGS] == list(OPENINGS.values())


async def passed(data: bytes, edit: Callable[[list[bytes]], list[bytes]]) -> bytes:
    target, far = socket.socketpair()
    with target, far:
        far.setblocking(False)
        async with said(data) as stream:
            await copy_requests(stream, Stream(target), edit)
        return far.recv(1 << 20)


async def test_requests_are_handed_on_with_their_bodies() -> None:
    """Several on one connection, by length and in chunks."""
    one = b"POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello"
    two = b"PUT /b HTTP/1.1\r\nhost: A.example:80\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n"
    three = b"GET /c HTTP/1.1\r\nHost: a.example\r\n\r\n"

    assert await passed(one + two + three, lambda lines: checked_head(lines, ["a.example"])) == one + two + three


BAD = [
    b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.example\r\nHost: evil.example\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : evil.example\r\nHost: a.example\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.example\r\n folded\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.example\r\nX: a\nHost: evil.example\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: +3\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    *(
        b"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\nabc\r\n0\r\n\r\n"
        for size in (b"-3", b"0x3", b"+3", b"1_0", b"", b"f" * 20)
    ),
    b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
]


async def test_requests_for_others_are_refused() -> None:
    """And so are those that two servers could read differently."""
    for data in BAD:
        with pytest.raises(RefusedConnection):
            await passed(data, lambda lines: checked_head(lines, ["a.example"]))


def test_no_protocol_is_changed_to() -> None:
    """After a change nothing could be read any more."""
    head = [b"GET / HTTP/1.1", b"Host: a.example", b"Upgrade: h2c", b"HTTP2-Settings: x", b"Accept: */*"]

    assert checked_head(head, ["a.example"]) == [head[0], head[1], head[4]]
