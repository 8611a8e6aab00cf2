"""What a command in the foreground waits for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine
from typing import Any


async def until_asked_to_stop() -> None:
    """Until Ctrl-C or TERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stopped.set)
    await stopped.wait()


async def until_eof(source: int = 0) -> None:
    """Until the process that started this one has ended, or closes our standard input."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(source, lambda: None if os.read(source, 1024) else ended.set())
    try:
        await ended.wait()
    finally:
        loop.remove_reader(source)  # an end that was read stays readable: the loop would turn without rest


async def until_one_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Until one of them has ended; the others are ended, and what went wrong in any of them is raised."""
    from hookline.fleet.connection import end

    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(*tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
