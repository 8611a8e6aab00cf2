"""Descriptors that a watched process and the one that watches it share."""

from __future__ import annotations

import os
import select
import signal
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


def end_with(lifeline: int) -> None:
    """End this process as soon as nobody holds the other end of a pipe any more: whoever watches it was killed.

    The kernel sends the signal, whatever a hook is busy with. Where it cannot, the process ends with its work.
    """
    import fcntl

    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    if select.select([lifeline], [], [], 0)[0]:
        os.kill(os.getpid(), signal.SIGKILL)


def is_terminal(fd: int) -> bool:
    """Whether somebody sits there."""
    try:
        return os.isatty(fd)
    except OSError:
        return False
