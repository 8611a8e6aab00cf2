"""Driving one hook's coroutine: the first step by hand, a timer only for those that suspend.

A hook that answers without waiting for anything never meets a timer, a task or a future. One that waits goes on in the
same task (what it started stays its own), with a timer set to cancel it. A hook that swallows its cancellation
gets a moment to clean up, is cancelled again, and is then closed: its late answer is dropped.

A coroutine that is stepped by `send` brings its answer in an exception, which costs more than the hook. So a generator
steps it, as `await` would, and says `SILENT` or what was `EarlyAnswer`; those that are done serve the next coroutine.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Generator
from math import inf
from types import BuiltinMethodType, coroutine
from typing import Any, cast
from weakref import WeakKeyDictionary

import msgspec

from hookline.core.engine.context import Context
from hookline.errors import HookCancelled, HookFailed, HookTimeout

_MOST_CANCELS = 2  # how often a hook is asked to stop before it is closed


class Alarm:
    """One timer of an event loop for all hooks that wait on it: a timer for each costs more than many of them take.

    It is set for the first that is due. Most answer long before that, so it rings in vain, and is set again only if
    one still waits. It keeps no reference to its loop, which may go before it.
    """

    def __init__(self) -> None:
        self._due: dict[drive, float] = {}
        self._rings = inf
        self._context = contextvars.Context()  # the timer outlives the hook that had it set, whose own context must not

    def set(self, entry: drive, when: float) -> None:
        """Tell `entry` at `when`, in the loop's time; what was set for it before no longer counts."""
        self._due[entry] = when
        if when < self._rings:
            self._ring_at(when)

    def clear(self, entry: drive) -> None:
        self._due.pop(entry, None)

    def _ring_at(self, when: float) -> None:
        self._rings = when
        asyncio.get_running_loop().call_at(when, self._ring, when, context=self._context)

    def _ring(self, when: float) -> None:
        if when != self._rings:  # an earlier one was set after this
            return
        self._rings = inf
        now = max(when, asyncio.get_running_loop().time())
        for entry in [entry for entry, due in self._due.items() if due <= now]:
            del self._due[entry]
            entry.expire()
        first = min(self._due.values(), default=inf)
        if first < self._rings:
            self._ring_at(first)


_alarms: WeakKeyDictionary[asyncio.AbstractEventLoop, Alarm] = WeakKeyDictionary()


def alarm_of(loop: asyncio.AbstractEventLoop) -> Alarm:
    """The alarm of all hooks that wait on `loop`."""
    return _alarms.get(loop) or _alarms.setdefault(loop, Alarm())


UNWANTED = "the answer is no longer wanted"
"""Cancel a task that fires with this message and the hook hears of it before it is thrown out of its `await`."""


Stepper = BuiltinMethodType  # what takes the steps of coroutines: the `send` of a generator, which is its `__self__`


class Suspended(msgspec.Struct):
    """A coroutine between two steps: who takes them, and what it waits for."""

    stepper: Stepper
    waits_for: Any


class RaisedError(msgspec.Struct):
    """An exception in place of an answer."""

    error: BaseException


class EarlyAnswer(msgspec.Struct):
    """What a stepper says in place of what its coroutine waits for, once there is an answer."""

    answer: Any

    def take(self) -> Any:
        answer, self.answer = self.answer, None
        return answer


SILENT: Any = object()  # the same for the answer that most have: `None`


@coroutine
def _steps() -> Generator[Any, Any, None]:
    """Takes the steps of one coroutine after another, and says how each answered."""
    answer = None
    while True:
        while answer is None:
            answer = yield from (yield SILENT)
        said, answer = EarlyAnswer(answer), None
        answer = yield from (yield said)


def new_stepper() -> Stepper:
    """One more, for when none is idle."""
    steps = _steps()
    steps.send(None)
    return cast("Stepper", steps.send)


idle: list[Stepper] = [new_stepper() for _ in range(4)]
"""Steppers between two coroutines; more than one, since a list that runs empty gives its memory back each time."""
_MOST_IDLE = 64


def start(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The coroutine's answer, or `RaisedError`, or `Suspended` if it has to wait."""
    stepper = idle.pop() if idle else new_stepper()
    try:
        said: Any = stepper(coroutine)
    except BaseException as error:  # noqa: BLE001 - an outcome, or raised again by the caller, which knows
        return RaisedError(error)
    return heard(stepper, said)


def heard(stepper: Stepper, said: Any) -> Any:
    """What a stepper said: the answer, or that the coroutine has to wait."""
    if said is SILENT:
        idle.append(stepper)
        return None
    if said.__class__ is not EarlyAnswer:
        return Suspended(stepper, said)
    idle.append(stepper)
    return said.take()


def _step(suspended: Suspended, resume: Callable[[Any], Any], value: Any) -> Any:
    try:
        said: Any = resume(value)
    except BaseException as error:  # noqa: BLE001 - an outcome, or raised again by the caller, which knows
        return RaisedError(error)
    if said is not SILENT and said.__class__ is not EarlyAnswer:
        suspended.waits_for = said
        return suspended
    if len(idle) < _MOST_IDLE:
        idle.append(suspended.stepper)
    return None if said is SILENT else said.take()


class drive(Awaitable[Any]):  # noqa: N801 - reads as the verb it is: `await drive(suspended, ctx)`
    """Go on with a suspended coroutine until it answers, or to `RaisedError`: what it raised, or that its time is up.

    Only a cancellation from outside is raised here. Who cancelled is told by counting requests: those from before do
    not count, our own are taken back, and those of the hook's own `asyncio.timeout` or `TaskGroup` are taken back by
    them. Any that are left came from outside.
    """

    def __init__(self, suspended: Suspended, ctx: Context) -> None:
        self._suspended, self._ctx = suspended, ctx
        self._steps: Generator[Any, Any, None] = suspended.stepper.__self__  # type: ignore[assignment]
        self._limit = ctx.deadline - (ctx.started or 0.0)  # as people were told, whatever of it is left
        self._expired = 0
        self._hurried = False

    def __await__(self) -> Generator[Any, Any, Any]:
        running = asyncio._get_running_loop()  # noqa: SLF001 - one of `asyncio.events.__all__`
        task = None if running is None else asyncio.current_task(running)
        if task is None:
            self._steps.close()
            why = "has to wait for something, which only works in an asyncio task; fire from within one"
            return RaisedError(HookFailed(why))
        suspended, self._task, self._loop, self._before = self._suspended, task, task.get_loop(), task.cancelling()
        self._due = self._loop.time() + max(self._ctx.deadline - self._ctx.scope.clock(), 0.0)
        self._alarm = alarm_of(self._loop)
        self._alarm.set(self, self._due)
        step: Any = suspended
        try:
            while step is suspended:  # hand everything between the task and the coroutine to and fro
                try:
                    sent = yield suspended.waits_for
                except GeneratorExit:
                    self._steps.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the coroutine's to handle
                    self._stepped = self._loop.time()
                    step = self._thrown(error)
                else:
                    self._stepped = self._loop.time()
                    step = _step(suspended, self._steps.send, sent)
                if self._hurried or self._task.cancelling() != self._before:
                    self._hurry()
        finally:
            self._alarm.clear(self)
            self._ctx.cancelled.presumed = None
            outside = self._cancelled_from_outside()
            for _ in range(min(self._expired, self._task.cancelling() - self._before)):
                self._task.uncancel()
        if step.__class__ is not RaisedError and not outside and not self._expired:
            return step if self._loop.time() <= self._due else RaisedError(self._too_late())
        return self._judged(step, outside=outside)

    def _cancelled_from_outside(self) -> bool:
        return self._task.cancelling() - self._before > self._expired

    def _judged(self, answer: Any, *, outside: bool) -> Any:
        error = answer.error if isinstance(answer, RaisedError) else None
        cancelled = isinstance(error, asyncio.CancelledError)
        if outside or (cancelled and self._before and not self._expired):
            self._ctx.cancelled.set("cancelled")
            raise error if error is not None and cancelled else asyncio.CancelledError from error
        if self._expired:
            return _because(HookTimeout(f"gave no reply within {self._limit:g} s"), error)
        return _because(HookCancelled("cancelled itself before it replied"), error) if cancelled else answer

    def _too_late(self) -> HookTimeout:
        """It answered, but only after its time; the timer could not ring while the hook held the loop up."""
        if self._stepped <= self._due:
            return blocked_loop(self._loop.time() - self._stepped, self._limit)
        return HookTimeout(f"gave no reply within {self._limit:g} s")

    def expire(self) -> None:
        """Its time, or its time to clean up, is over."""
        self._ctx.cancelled.set("cancelled" if self._cancelled_from_outside() else "timeout")
        self._expired += 1
        self._alarm.set(self, self._loop.time() + self._ctx.scope.grace)
        self._task.cancel()

    def _thrown(self, error: BaseException) -> Any:
        if error.args == (UNWANTED,):  # the caller of `fire` said so: it is clear whose cancellation this is
            self._ctx.cancelled.set("cancelled")
        elif isinstance(error, asyncio.CancelledError):
            self._ctx.cancelled.presumed = self._cancelled_from_outside
        if self._expired > _MOST_CANCELS and isinstance(error, asyncio.CancelledError):  # it will not stop
            try:
                self._steps.close()
            except RuntimeError as stubborn:
                return RaisedError(stubborn)
            return RaisedError(asyncio.CancelledError())
        return _step(self._suspended, self._steps.throw, error)

    def _hurry(self) -> None:
        """While a caller outside waits for the hook to stop, it has no more than its time to clean up."""
        hurried = self._cancelled_from_outside()
        if hurried is self._hurried or self._expired:
            return
        self._hurried = hurried
        soon = self._loop.time() + self._ctx.scope.grace
        self._alarm.set(self, min(self._due, soon) if hurried else self._due)


def blocked_loop(seconds: float, limit: float) -> HookTimeout:
    """A hook that did its work without awaiting anything, for longer than it may take."""
    return HookTimeout(f"gave no reply within {limit:g} s: it blocked the event loop for {seconds:.3g} s")


def _because(error: HookFailed, cause: BaseException | None) -> RaisedError:
    error.__cause__ = cause
    return RaisedError(error)
