"""Python functions: `async def` on the loop, `def` on a thread that can be abandoned."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from hookline.engine import Answer, Context
from hookline.events import Event
from hookline.hooks.actions import Function
from hookline.hooks.hook import Hook

log = logging.getLogger("hookline.function")
_IDLE_SECONDS = 5.0
_Job = Callable[[], None]


class FunctionRunner:
    """Calls functions; a `def` that outlives its time goes on in its thread, counted in `abandoned`, and is ignored."""

    def __init__(self) -> None:
        self._threads = Threads()

    @property
    def abandoned(self) -> int:
        """How many functions still run although nobody waits for them."""
        return self._threads.abandoned

    async def run(self, hook: Hook, event: Event, ctx: Context) -> Answer:
        """Call the hook's function and wait for its answer."""
        action = hook.action
        assert isinstance(action, Function)
        arguments = (event, ctx) if action.takes_context else (event,)
        if action.is_async or hook.inline:
            answer = action.call(*arguments)
        else:
            answer = await self._threads.call(lambda: action.call(*arguments))
        return await answer if action.is_async or inspect.isawaitable(answer) else answer

    async def aclose(self) -> None:
        """Let idle threads end; an abandoned one ends when its function returns."""
        self._threads.close()
        if self.abandoned:
            log.warning("%d function hook(s) still run in abandoned threads", self.abandoned)


class Threads:
    """Daemon threads, made as needed and reused, so that a blocked function can never keep the process alive."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._all = 0
        self.abandoned = 0

    async def call(self, function: Callable[[], Any]) -> Any:
        """The function's result; cancelling this abandons the function."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        call = _Call(self, function, future, loop)
        self._submit(call)
        try:
            return await future
        except asyncio.CancelledError:
            call.abandon()
            raise

    def _submit(self, job: _Job) -> None:
        with self._lock:
            start = self._idle == 0
            if start:
                self._all += 1
            else:
                self._idle -= 1
        self._jobs.put(job)
        if start:
            threading.Thread(target=self._work, name="hookline-function", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle:
                        self._idle -= 1
                        self._all -= 1
                        return
                continue  # a job was promised to this thread in the meantime
            if job is None:
                return
            job()
            with self._lock:
                self._idle += 1

    def close(self) -> None:
        """End the threads that have nothing to do."""
        with self._lock:
            idle, self._idle = self._idle, 0
            self._all -= idle
        for _ in range(idle):
            self._jobs.put(None)


class _Call:
    """One function on its way through a thread and back."""

    def __init__(
        self,
        threads: Threads,
        function: Callable[[], Any],
        future: asyncio.Future[Any],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._threads, self._function, self._future, self._loop = threads, function, future, loop
        self._context = contextvars.copy_context()
        self._state = threading.Lock()
        self._done = self._left = False

    def __call__(self) -> None:
        try:
            result, error = self._context.run(self._function), None
        except BaseException as raised:  # noqa: BLE001 - carried to whoever waits
            result, error = None, raised
        with self._state:
            self._done = True
            if self._left:
                with self._threads._lock:
                    self._threads.abandoned -= 1
                return
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            log.debug("a function hook answered after its loop was closed")

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self._future.done():
            return
        if isinstance(error, StopIteration):  # a future cannot carry it
            error = RuntimeError(f"function raised StopIteration: {error}")
        if error is not None:
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    def abandon(self) -> None:
        """Nobody waits any more; count the thread until the function returns."""
        with self._state:
            if not self._done:
                self._left = True
                with self._threads._lock:
                    self._threads.abandoned += 1
