"""The event loop of a command: made when it is needed, or ahead, while nothing waits for it; and lines read for it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine
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
    """The lines of a descriptor that hold something; nothing of this need be waited for at the end.

    A line longer than `longest` bytes is cut one byte above that, so that its reader knows.
    """
    pending = bytearray()
    async for chunk in _chunks(source):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(pending + line)[: longest + 1]
            pending.clear()
            if whole.strip():
                yield whole
        pending += rest
        del pending[longest + 1 :]
    if pending.strip():
        yield bytes(pending)


async def _chunks(source: int) -> AsyncIterator[bytes]:
    """What is read: when the loop says that there is something; by a thread, where the loop cannot tell (a file)."""
    loop = asyncio.get_running_loop()
    while True:
        readable: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(source, _resolve, readable)
        except (PermissionError, NotImplementedError):
            break
        try:
            await readable
        finally:
            loop.remove_reader(source)
        if not (chunk := _chunk(source)):
            return
        yield chunk
    queue: asyncio.Queue[bytes] = asyncio.Queue(64)

    def read() -> None:
        """Read the descriptor, not `sys.stdin`, whose lock would hold up the end of the program."""
        with suppress(RuntimeError, CancelledError):  # the loop has ended before the lines did
            while chunk := _chunk(source):
                asyncio.run_coroutine_threadsafe(queue.put(chunk), loop).result()
            asyncio.run_coroutine_threadsafe(queue.put(b""), loop).result()

    threading.Thread(target=read, daemon=True).start()
    while chunk := await queue.get():
        yield chunk


def _resolve(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _chunk(source: int) -> bytes:
    try:
        return os.read(source, 65536)
    except OSError:  # closed by its other end, or by us
        return b""
