"""What client, service and workers say to each other.

A request is a head, a route and a body. The service reads head and route, which say who is to answer; the body, with
stdin, stdout and stderr attached, is left in the socket for the process that answers. Then come frames: a kind of one
letter, a length, and so many bytes.
"""

import _socket
import os

MAGIC = b"HOOKLINE"
PROTOCOL = 3  # raised with every change of what is sent; who speaks another one is not answered
RUN, CONTROL = b"r", b"c"  # what a request wants: a command run, or something of the service itself
HEAD = len(MAGIC) + 2 + 1 + 4
LONGEST = 4 << 20  # bytes that a route or a body may have

ACCEPTED, STARTED, ENDED, DECLINED, RESULT = b"a", b"s", b"e", b"n", b"j"
"""Kinds of frames: a worker has been asked (its pid) · the event's process runs (its pid) · how it ended · no, and why
· the JSON answer to a control request."""
FRAME = 5


class FrameError(Exception):
    """What came is not what was agreed."""


def head(kind: bytes, route: bytes) -> bytes:
    """A request up to its body."""
    return MAGIC + PROTOCOL.to_bytes(2, "big") + kind + len(route).to_bytes(4, "big") + route


def read_head(data: bytes) -> tuple[int, bytes, int]:
    """The protocol, the kind of request and the length of its route."""
    if not data.startswith(MAGIC):
        raise FrameError("not a request")
    length = int.from_bytes(data[11:15], "big")
    if length > LONGEST:
        raise FrameError("a route too long")
    return int.from_bytes(data[8:10], "big"), data[10:11], length


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """One frame."""
    return kind + len(payload).to_bytes(4, "big") + payload


def read_frame(connection: _socket.socket) -> tuple[bytes, bytes]:
    """The next frame; an end in between is a `FrameError`."""
    start = exactly(connection, FRAME)
    length = int.from_bytes(start[1:], "big")
    if length > LONGEST:
        raise FrameError("a frame too long")
    return start[:1], exactly(connection, length)


def exactly(connection: _socket.socket, size: int) -> bytes:
    """So many bytes, no fewer."""
    data = connection.recv(size) if size else b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise FrameError("the connection ended early")
        data += more
    return data


def counted(texts: list[str]) -> list[bytes]:
    """A list of texts as fields, which are joined by NULs: how many, and each."""
    return [str(len(texts)).encode(), *map(os.fsencode, texts)]


def take(fields: list[bytes], at: int) -> tuple[list[str], int]:
    """A counted list from the fields at a place, and the place after it."""
    end = at + 1 + int(fields[at])
    return [os.fsdecode(field) for field in fields[at + 1 : end]], end
