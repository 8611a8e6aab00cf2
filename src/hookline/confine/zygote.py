"""Confined lines for one program that starts many: each in a fork of a process that has read everything already.

`launch.py --serve FD` is that process. Its owner sends a descriptor of what to run over a socket, with the line's own
descriptors; the answer is the line's pid and, once it has ended, its exit code. When the owner ends, so does this.
"""

from __future__ import annotations

import array
import marshal
import os
import socket

from hookline.confine import check, main, metadata, run, signals, supervisor

__all__ = ["serve"]

_WARM = (check, metadata, run, supervisor)
"""Read before the first line comes."""
_MOST_DESCRIPTORS, _FREE = 16, 100
_CLOSE_ON_EXEC = 0x40000000
_F_DUPFD_CLOEXEC = 1030


def serve(descriptor: int) -> int:
    """Start a line for each message, until there is nobody to send one."""
    signals.ignore(signals.INT, signals.QUIT, signals.CHLD)  # what has ended is gone, also while nobody asks
    room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
    with socket.socket(fileno=descriptor) as channel:
        while True:
            data, ancillary, _, _ = channel.recvmsg(1, room, _CLOSE_ON_EXEC)
            if not data:
                return 0
            received = array.array("i")
            for _, _, piece in ancillary:
                received.frombytes(piece)
            if os.fork() == 0:
                channel.close()
                _become(list(received))
            for fd in received:
                os.close(fd)


def _become(received: list[int]) -> None:
    """Be the launcher of a line; never comes back."""
    code = run.FAILED
    status = -1
    try:
        os.setsid()
        signals.default(signals.INT, signals.QUIT, signals.CHLD)
        status, order, *given = _moved(received)
        with open(order, "rb") as file:
            folder, words, variables, targets = marshal.load(file)  # noqa: S302 - written by our own owner
        for fd, target in zip(given, targets, strict=True):
            os.dup2(fd, target)
            os.close(fd)
        os.write(status, os.getpid().to_bytes(4, "little"))
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        code = main.main(words)
    except OSError as error:
        os.write(2, f"hookline confine: {error}\n".encode("utf-8", "replace"))
    finally:
        if status >= 0:
            os.write(status, code.to_bytes(4, "little"))
        os._exit(code)


def _moved(descriptors: list[int]) -> list[int]:
    """The same descriptors, out of the way of the numbers that the line will have."""
    import fcntl

    moved = [fcntl.fcntl(fd, _F_DUPFD_CLOEXEC, _FREE) for fd in descriptors]
    for fd in descriptors:
        os.close(fd)
    return moved
