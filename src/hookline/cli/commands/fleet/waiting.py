"""What a command in the foreground waits for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal


async def until_asked_to_stop() -> None:
    """Until Ctrl-C or TERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stopped.set)
    await stopped.wait()


async def until_eof() -> None:
    """Until whoever started this process has ended, or closes our standard input."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: None if os.read(0, 1024) else ended.set())
    await ended.wait()
