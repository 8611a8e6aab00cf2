"""A private event loop in a thread of its own, for programs without asyncio.

One for the whole process, started at the first call and never stopped: it is a daemon thread, so it keeps no program
alive. What runs on it outlives the call, as background hooks and kept connections must.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, ThreadPoolExecutor
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
        call = _Call(work)
        try:
            self._loop.call_soon_threadsafe(call.start, self._loop)
            call.ended.acquire()
        except BaseException:
            self._loop.call_soon_threadsafe(call.cancel)
            raise
        assert call.task is not None
        if call.task.cancelled():
            raise CancelledError
        return call.task.result()  # type: ignore[no-any-return]


class _Call:
    """A coroutine on its way to the loop and back; a lock wakes the caller, in a third less than a future takes."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self.task: asyncio.Task[Any] | None = None
        self._work = work
        self.ended = threading.Lock()
        self.ended.acquire()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.task = loop.create_task(self._work)
        self.task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.ended.release()

    def cancel(self) -> None:
        """Interrupted before it was sent off, it never starts."""
        if self.task is None:
            self._work.close()
        else:
            self.task.cancel()


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
