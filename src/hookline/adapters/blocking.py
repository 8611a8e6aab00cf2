"""Waiting for a coroutine where no event loop runs: one loop in a thread of its own, for the whole process."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def wait_for(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The coroutine's result; it runs elsewhere, so this may be called from a thread that has a loop of its own."""
    return asyncio.run_coroutine_threadsafe(_in_context(contextvars.copy_context(), start), _running()).result()


async def _in_context(context: contextvars.Context, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return await asyncio.get_running_loop().create_task(start(), context=context)


def _running() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one thread serves the whole process
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="hookline-adapters", daemon=True).start()
        return _loop
