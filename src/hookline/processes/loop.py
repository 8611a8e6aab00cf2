"""The event loop of a command: made when it is needed, or ahead, while nothing waits for it; and lines read for it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_ahead: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: a fork must not use its parent's."""


def prepare() -> None:
    """Make the loop of this process's next `run` now, unless it is there."""
    if os.getpid() not in _ahead:
        _ahead[os.getpid()] = asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`."""
    with asyncio.Runner(loop_factory=lambda: _ahead.pop(os.getpid(), None) or asyncio.new_event_loop()) as runner:
        return runner.run(work)


async def read_lines(source: int, longest: int) -> AsyncIterator[bytes]:
    """The lines of a descriptor that hold something, read ahead by a thread that need not be waited for at the end.

    A line longer than `longest` bytes is cut one byte above that, so that its reader knows.
    """
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(64)
    loop = asyncio.get_running_loop()

    def put(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()

    threading.Thread(target=_read, args=(source, longest, put), daemon=True).start()
    while (line := await queue.get()) is not None:
        if line.strip():
            yield line


def _read(source: int, longest: int, put: Callable[[bytes | None], None]) -> None:
    """Read the descriptor, not `sys.stdin`, whose lock would hold up the end of the program."""
    pending = bytearray()
    with suppress(RuntimeError, CancelledError):  # the loop has ended before the lines did
        while chunk := _chunk(source):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                put(bytes(pending + line)[: longest + 1])
                pending.clear()
            pending += rest
            del pending[longest + 1 :]
        put(bytes(pending))
        put(None)


def _chunk(source: int) -> bytes:
    try:
        return os.read(source, 65536)
    except OSError:  # closed by its other end, or by us
        return b""
