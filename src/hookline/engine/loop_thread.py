"""A private event loop in a thread of its own, for programs without asyncio.

One for the whole process, started at the first call and never stopped: it is a daemon thread, so it keeps no program
alive. What runs on it outlives the call, as background hooks and kept connections must.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop that runs in its own thread."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    @property
    def is_current(self) -> bool:
        """Whether the caller is running on this loop, and would wait for itself."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; a caller that is interrupted cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_lock = threading.Lock()
_shared: LoopThread | None = None


def _forget() -> None:
    """A forked child has the loop but not its thread."""
    global _shared, _lock
    _shared, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows
    os.register_at_fork(after_in_child=_forget)


def _loop_thread() -> LoopThread:
    global _shared  # noqa: PLW0603 - one loop for the process is the point
    with _lock:
        if _shared is None:
            _shared = LoopThread("hookline-sync")
        return _shared


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, for a caller that cannot await: on the private loop, or, from there, on a loop beside it.

    It works in any thread, also in one whose own event loop is running; that loop stands still meanwhile.
    """
    private = _loop_thread()
    return _run_beside(work) if private.is_current else private.run(work)


def _run_beside(work: Coroutine[Any, Any, T]) -> T:
    """On a loop that lives as long as the call, in a thread of its own."""
    with ThreadPoolExecutor(1, "hookline-sync-nested") as pool:
        return pool.submit(copy_context().run, asyncio.run, work).result()
