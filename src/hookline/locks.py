"""One writer at a time: a lock on an open file that other processes respect, and that ends with its holder."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_BEYOND = 1 << 30
"""Windows locks bytes, and nobody may read locked ones: so it is one beyond any that are written."""


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, _BEYOND, os.SEEK_SET)
        while True:
            try:
                return msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
            except OSError as problem:
                if problem.errno != errno.EDEADLK:  # it only gave up after ten seconds of waiting
                    raise

    def _unlock(fd: int) -> None:
        os.lseek(fd, _BEYOND, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)  # said aloud: a process forked meanwhile would hold it open


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold the lock on a file, which is made if it is not there; its descriptor is for reading and writing."""
    fd = os.open(path, _FLAGS, 0o600)
    try:
        _lock(fd)
        try:
            yield fd
        finally:
            _unlock(fd)
    finally:
        os.close(fd)


def read_at(fd: int, length: int, offset: int) -> bytes:
    """Bytes from the middle of a file."""
    os.lseek(fd, offset, os.SEEK_SET)
    parts = []
    while length > 0 and (part := os.read(fd, length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """A small piece of a file, in one write."""
    os.lseek(fd, offset, os.SEEK_SET)
    os.write(fd, data)
