"""Driving one hook's coroutine: the first step by hand, a timer only for those that suspend.

A hook that answers without waiting for anything never meets a timer, a task or a future. One that waits goes on in the
same task (what it started stays its own), with the loop's timer set to cancel it. Cancellation is thrown once; a hook
that swallows it gets a moment to clean up, is cancelled again, and is then closed: its late answer is nobody's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import msgspec

from hookline.errors import HookCancelled, HookTimeout


class Suspended(msgspec.Struct):
    """A coroutine after its first step: what it waits for."""

    coroutine: Coroutine[Any, Any, Any]
    waits_for: Any


class Raised(msgspec.Struct):
    """An exception in place of an answer."""

    error: BaseException


def first_step(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The coroutine's answer, or `Raised`, or `Suspended` if it has to wait."""
    try:
        return Suspended(coroutine, coroutine.send(None))
    except StopIteration as done:
        return done.value
    except BaseException as error:  # noqa: BLE001 - an outcome, or raised again by whoever knows which
        return Raised(error)


class Limits(msgspec.Struct, frozen=True):
    """How long a hook may still take, how long it may clean up once told to stop, and the limit people were told."""

    seconds: float
    grace: float
    on_cancel: Callable[[str], None]
    stated: float | None = None


class finish(Awaitable[Any]):  # noqa: N801 - reads as the verb it is: `await finish(suspended, limits)`
    """Go on with a suspended coroutine until it answers or its time is up; raises `HookTimeout` then."""

    def __init__(self, suspended: Suspended, limits: Limits) -> None:
        self._coroutine = suspended.coroutine
        self._waits_for = suspended.waits_for
        self._limits = limits
        self._expired = 0
        self._from_outside: BaseException | None = None

    def __await__(self) -> Generator[Any, Any, Any]:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task, self._loop = task, loop
        self._timer = loop.call_later(self._limits.seconds, self._expire)
        try:
            answer = yield from self._drive()
        finally:
            self._timer.cancel()
            ours = min(self._expired, task.cancelling())
            for _ in range(ours):
                task.uncancel()
        return self._judged(answer)

    def _judged(self, answer: Any) -> Any:
        if self._from_outside is not None:
            raise self._from_outside
        if self._expired:
            raise HookTimeout(f"gave no reply within {self._limits.stated or self._limits.seconds:g} s")
        if isinstance(answer, Raised):
            if isinstance(answer.error, asyncio.CancelledError):
                raise HookCancelled("cancelled itself before it replied")
            raise answer.error
        return answer

    def _expire(self) -> None:
        """Its time, or its time to clean up, is over."""
        self._expired += 1
        self._limits.on_cancel("timeout")
        self._timer = self._loop.call_later(self._limits.grace, self._expire)
        self._task.cancel()

    def _drive(self) -> Generator[Any, Any, Any]:
        """Hand everything between the task and the coroutine to and fro."""
        while True:
            try:
                sent = yield self._waits_for
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's to handle
                step = self._thrown(error)
            else:
                step = first_step_again(self._coroutine, sent)
            if not isinstance(step, Suspended):
                return step
            self._waits_for = step.waits_for

    def _thrown(self, error: BaseException) -> Any:
        if isinstance(error, asyncio.CancelledError):
            if not self._expired or self._task.cancelling() > self._expired:
                self._from_outside = error
                self._limits.on_cancel("cancelled")
                self._arm_grace()
            if self._expired > 2:
                return _closed(self._coroutine)
        try:
            return Suspended(self._coroutine, self._coroutine.throw(error))
        except StopIteration as done:
            return done.value
        except BaseException as raised:  # noqa: BLE001 - see first_step
            return Raised(raised)

    def _arm_grace(self) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(self._limits.grace, self._expire)


def first_step_again(coroutine: Coroutine[Any, Any, Any], sent: Any) -> Any:
    """A later step: as `first_step`, with what the task sends in."""
    try:
        return Suspended(coroutine, coroutine.send(sent))
    except StopIteration as done:
        return done.value
    except BaseException as error:  # noqa: BLE001 - see first_step
        return Raised(error)


def _closed(coroutine: Coroutine[Any, Any, Any]) -> Raised:
    """Take a coroutine that will not stop out of service."""
    try:
        coroutine.close()
    except RuntimeError as stubborn:
        return Raised(stubborn)
    return Raised(asyncio.CancelledError())
