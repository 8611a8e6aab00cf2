"""A copy of a caller's socket: what is done to it is done to the caller's."""

from __future__ import annotations

import _socket
import fcntl
import os

from hookline.sandbox import libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

connect: Callable[..., int] = libc.function("connect")
_bind = libc.function("bind")


class SocketCopy:
    """`with` closes it, unless it is kept."""

    def __init__(self, fd: int) -> None:
        self.fd: int = fd
        try:
            self.socket: _socket.socket = _socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            raise
        self._flags = fcntl.fcntl(fd, fcntl.F_GETFL)

    @property
    def blocking(self) -> bool:
        """Whether the caller waits for its calls."""
        return not self._flags & os.O_NONBLOCK

    def connect(self, address: bytes) -> int:
        """Connect without waiting; 0 or the error."""
        if self.blocking:
            fcntl.fcntl(self.fd, fcntl.F_SETFL, self._flags | os.O_NONBLOCK)
        try:
            return libc.get_errno() if connect(self.fd, address, len(address)) else 0
        finally:
            if self.blocking:
                fcntl.fcntl(self.fd, fcntl.F_SETFL, self._flags)

    def bind(self, address: bytes) -> None:
        """Give it a name."""
        if _bind(self.fd, address, len(address)):
            raise libc.failure()

    def keep(self) -> int:
        """A descriptor that stays."""
        return os.dup(self.fd)

    def close(self) -> None:
        """Let go of it."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
