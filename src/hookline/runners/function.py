"""Python functions: `async def` on the loop, `def` on a thread that can be abandoned."""

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from hookline.core.engine import Answer, Context
from hookline.core.hooks.hook import Function, Hook
from hookline.errors import HookFailed
from hookline.events import Event

log: logging.Logger = logging.getLogger("hookline.function")
_IDLE_SECONDS = 1.0


class FunctionRunner:
    """Calls functions; a `def` that outlives its time goes on in its thread, counted in `abandoned`, and is ignored."""

    def __init__(self) -> None:
        self._threads = Threads()

    @property
    def abandoned(self) -> int:
        """How many functions still run although they are not waited for."""
        return self._threads.abandoned

    async def run(self, hook: Hook, event: Event, ctx: Context) -> Answer:
        action = hook.action
        assert isinstance(action, Function)
        arguments = (event, ctx) if action.takes_context else (event,)
        if action.is_async or hook.inline:
            answer = action.call(*arguments)
        else:
            answer = await self._threads.call(lambda: action.call(*arguments))
        answer = await answer if inspect.isawaitable(answer) else answer
        return cast("Answer", answer)  # whether it is one, the engine finds out

    async def aclose(self) -> None:
        """Let threads end; an abandoned one ends when its function returns."""
        self._threads.close()
        if self.abandoned:
            log.warning("%d function hook(s) still run in abandoned threads", self.abandoned)


class Threads:
    """Daemon threads, made as needed and reused, so that a blocked function can never keep the process alive.

    At most `most` functions run at once, not counting abandoned ones; the others wait their turn on their own time.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._waiting: deque[ThreadedCall] = deque()
        self._lock = threading.Condition()
        self._idle = self._all = 0
        self._closed = False
        self.abandoned: int = 0

    async def call(self, function: Callable[[], Any]) -> Any:
        """The function's result; cancelling this abandons the function, or forgets it if it has not begun."""
        call = ThreadedCall(function, asyncio.get_running_loop())
        with self._lock:
            self._waiting.append(call)
            self._hire()
        try:
            return await call.result
        except asyncio.CancelledError:
            with self._lock:
                call.left = True
                if call.running:
                    self.abandoned += 1
                    self._hire()
            raise

    def _hire(self) -> None:
        """Wake a thread, or start one if a call waits that no idle one will take; the lock is held."""
        self._lock.notify()
        if len(self._waiting) <= self._idle or self._all >= self._most + self.abandoned:
            return
        try:
            threading.Thread(target=self._work, name="hookline-function", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads: wait for one of ours
            log.warning("no further thread for function hooks: %s", error)
            return
        self._all += 1

    def _work(self) -> None:
        while (call := self._next_call()) is not None:
            call.run()
            with self._lock:
                self.abandoned -= call.left
                call.running = False

    def _next_call(self) -> "ThreadedCall | None":
        """The call that a thread takes, unless it was given up on; `None` if the thread is to end."""
        with self._lock:
            self._idle += 1
            self._lock.wait_for(lambda: self._waiting or self._closed, _IDLE_SECONDS)
            self._idle -= 1
            while self._waiting:
                call = self._waiting.popleft()
                if not call.left:
                    call.running = True
                    return call
            self._all -= 1
            return None

    def close(self) -> None:
        """From now on a thread that has nothing to do ends."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()


class ThreadedCall:
    """One function on its way through a thread and back; `running` and `left` change under the lock of its threads."""

    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.result: asyncio.Future[Any] = loop.create_future()
        self.running = self.left = False
        self._function, self._loop = function, loop
        self._context = contextvars.copy_context()

    def run(self) -> None:
        try:
            result, error = self._context.run(self._function), None
        except BaseException as raised:  # noqa: BLE001 - carried to the caller
            result, error = None, raised
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            log.debug("a function hook answered after its loop was closed")

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.result.done():
            return
        if isinstance(error, (StopIteration, GeneratorExit)):  # a future cannot carry them
            error = HookFailed(f"raised {type(error).__name__}: {error}")
        if error is not None:
            self.result.set_exception(error)
        else:
            self.result.set_result(result)
