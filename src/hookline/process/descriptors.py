"""Descriptors that a watched process and the one that watches it share."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from pathlib import Path


def drop(*descriptors: int) -> int:
    """Close them; -1, which stands for a descriptor that is closed."""
    for fd in descriptors:
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)
    return -1


def disconnect(*descriptors: int) -> None:
    """A process that a hook has forked off takes no lines and gives no answers."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in descriptors:
        os.dup2(nothing, fd, inheritable=False)
    os.close(nothing)
    with suppress(OSError):  # where there is no /proc, an event loop is not shared with a fork either
        for path in list(Path("/proc/self/fd").iterdir()):
            _unshare_poll(path)


def _unshare_poll(path: Path) -> None:
    """An epoll that a fork inherits is its parent's: what it unregisters there its parent never hears of again."""
    with suppress(OSError):
        if str(path.readlink()) == "anon_inode:[eventpoll]":
            fresh = select.epoll()
            os.dup2(fresh.fileno(), int(path.name), inheritable=False)
            fresh.close()


def is_terminal(fd: int) -> bool:
    """Whether somebody sits there."""
    try:
        return os.isatty(fd)
    except OSError:
        return False
