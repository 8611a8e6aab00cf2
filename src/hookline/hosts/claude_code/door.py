"""How many may stand at the door: connections that ask nothing must not keep out one that does.

A process has some thousand descriptors. Whoever opens connections and says nothing would use them all up, so beyond
`MOST` the one that has been silent longest is closed; one whose question is being answered is not touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

MOST = 256
"""Connections that may be open at once."""
MOST_LINES = 20
"""Lines that the server may write to the log about bad requests; anybody on the machine can send those."""


class Door:
    """Makes the protocol of each connection, and knows which of them are silent."""

    def __init__(self, make: Callable[[], asyncio.Protocol], most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._open: dict[Any, None] = {}  # by when they were last heard, the longest silent first
        self._busy: set[Any] = set()

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self, self._make())

    def entered(self, transport: Any) -> None:
        """One more; if that is too many, the one that has been silent longest goes."""
        self._open[transport] = None
        if len(self._open) > self._most:
            silent = next((one for one in self._open if one not in self._busy), None)
            if silent is not None:
                self.left(silent)
                silent.abort()

    def heard(self, transport: Any) -> None:
        """It said something."""
        if transport in self._open:
            del self._open[transport]
            self._open[transport] = None

    def left(self, transport: Any) -> None:
        """It is gone."""
        self._open.pop(transport, None)

    def begin(self, transport: Any) -> None:
        """Its question is being answered."""
        self._busy.add(transport)

    def done(self, transport: Any) -> None:
        """Its question is answered."""
        self._busy.discard(transport)


class _Connection(asyncio.Protocol):
    """Passes everything on to the server's own protocol, and tells the door."""

    def __init__(self, door: Door, inner: asyncio.Protocol) -> None:
        self._door, self._inner = door, inner
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._inner.connection_made(transport)
        self._door.entered(transport)

    def data_received(self, data: bytes) -> None:
        self._door.heard(self._transport)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.left(self._transport)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def bounded_log(name: str, most: int = MOST_LINES) -> logging.Logger:
    """A logger that says so much and no more."""
    log = logging.getLogger(name)
    left = most

    def within(record: logging.LogRecord) -> bool:
        nonlocal left
        left -= 1
        if left == 0:
            record.msg, record.args, record.exc_info = "further lines about bad requests are left out", (), None
        return left >= 0

    log.filters = [within]
    return log
