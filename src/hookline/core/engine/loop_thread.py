"""A private event loop for programs without asyncio, one for the whole process.

Callers run it themselves, each in its own thread, for as long as hooks have nothing to wait for. The first one that has
to wait, or that leaves something to do on the loop, starts its thread, which runs it from then on: what runs there
outlives the call, as background hooks and kept connections must. It is a daemon thread, so it keeps no program alive.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop, and the thread that runs it once something has to wait."""

    def __init__(self, name: str) -> None:
        self._loop = _new_loop(self._note)
        self._has_more = False
        self._turn = threading.Lock()  # a caller holds it to run the loop, the thread once, to know that none does
        self._serves = False
        self._begun = threading.Lock()  # taken for good by the starter of the thread
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def _note(self, method: str) -> None:
        """Something is left to the loop; by another thread, if it says so."""
        self._has_more = True
        if method == "call_soon_threadsafe":
            self._start()

    def _start(self) -> None:
        if self._begun.acquire(blocking=False):
            self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        with self._turn:
            self._serves = True
        self._loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; a caller that is interrupted cancels it."""
        running = asyncio._get_running_loop()  # noqa: SLF001 - one of `asyncio.events.__all__`
        if running is self._loop:
            with ThreadPoolExecutor(1, "hookline-sync-nested") as pool:  # here the caller would wait for itself
                return pool.submit(copy_context().run, asyncio.run, work).result()
        call = _Call(work)
        try:
            if running is not None or not self._lend(call):
                self._loop.call_soon_threadsafe(call.start, self._loop)
            call.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(call.cancel)
            raise
        assert call.task is not None
        if call.task.cancelled():
            raise CancelledError
        return call.task.result()  # type: ignore[no-any-return]

    def _lend(self, call: _Call) -> bool:
        """Let the caller run the loop for one round, which is enough for most; no if the thread does already."""
        with self._turn:
            if self._serves:
                return False
            call.task = self._loop.create_task(call.work)
            self._has_more = False
            self._loop.stop()  # after one round
            self._loop.run_forever()
            if not call.task.done():
                call.task.add_done_callback(call.end)
            if self._has_more or not call.task.done():
                self._start()
            return True

    def close(self) -> None:
        """Give the loop back, if it never had to serve."""
        with self._turn:
            if not self._begun.locked():
                self._loop.close()


class _Call:
    """A coroutine on its way to the loop and back; a lock wakes the caller, in a third less than a future takes."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.work = work
        self._ended = threading.Lock()
        self._ended.acquire()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.task = loop.create_task(self.work)
        self.task.add_done_callback(self.end)

    def end(self, task: asyncio.Task[Any]) -> None:
        self._ended.release()

    def wait(self) -> None:
        if self.task is None or not self.task.done():
            self._ended.acquire()

    def cancel(self) -> None:
        """Interrupted before it was sent off, it never starts."""
        if self.task is None:
            self.work.close()
        elif not self.task.cancel() and not self.task.cancelled():
            self.task.exception()  # what interrupted it, which the caller has heard


def _new_loop(note: Callable[[str], None]) -> asyncio.AbstractEventLoop:
    """A loop as this platform has them, which notes each call that leaves something to it.

    It is not closed with its last reference: a child that forked would close its parent's selector.
    """
    plain = asyncio.new_event_loop()
    plain.close()
    base = type(plain)

    def noting(name: str) -> Callable[..., Any]:
        method = getattr(base, name)

        def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            note(name)
            return result

        return call

    names = ("call_soon", "call_at", "add_reader", "add_writer", "call_soon_threadsafe")
    kept: type[Any] = type(
        "KeptLoop", (base,), {"__del__": lambda self: None, **{name: noting(name) for name in names}}
    )
    return kept()  # type: ignore[no-any-return]


_lock = threading.Lock()
_shared: LoopThread | None = None


def _forget() -> None:
    """A forked child has the loop but not its thread."""
    global _shared, _lock
    _shared, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _close() -> None:
    """The program ends; a later caller gets a loop of its own."""
    global _shared
    with _lock:
        private, _shared = _shared, None
    if private is not None:
        private.close()


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, for a caller that cannot await: on the private loop, or, from there, on a loop beside it.

    It works in any thread; in one whose own event loop is running, that loop stands still meanwhile.
    """
    global _shared  # noqa: PLW0603 - one loop for the process is the point
    with _lock:
        private = _shared = _shared or LoopThread("hookline-sync")
    return private.run(work)
