"""Running a command's work to its end, so that nothing hooks started outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
TERMINATED = 143


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; TERM ends it as Ctrl-C does, and with it everything that hooks have started."""

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _cancel_once, task)
        return await work

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


def _cancel_once(task: asyncio.Task[Any]) -> None:
    """A second signal does not cut the cleaning up short."""
    if not task.cancelling():
        task.cancel()
