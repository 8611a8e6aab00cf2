"""One timer for all hooks that wait on a loop: each is told in time, and the timer keeps none of them alive."""

import asyncio
import gc
import weakref
from contextvars import ContextVar
from typing import Any

import pytest

from hookline import Hooks
from hookline.core.engine.coroutine_driver import alarm_of, drive
from hookline.events import PreToolUse

BASH = PreToolUse(tool_name="Bash")
FAR = 1000.0


class Sleeper(drive):
    """What waits to be told, and drives nothing."""

    def __init__(self, *, again_at: float | None = None) -> None:
        self.told = asyncio.Event()
        self.times = 0
        self._again_at = again_at

    def expire(self) -> None:
        self.times += 1
        if self._again_at is None:
            self.told.set()
        else:
            alarm_of(asyncio.get_running_loop()).set(self, self._again_at)
            self._again_at = None


def timers_of(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the loop is asked to ring."""
    asked: list[float] = []
    call_at = loop.call_at

    def counted(when: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
        asked.append(when)
        return call_at(when, *args, **options)

    monkeypatch.setattr(loop, "call_at", counted)
    return asked


async def test_hooks_that_wait_share_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due after the first needs none of its own."""
    timers, hooks = timers_of(asyncio.get_running_loop(), monkeypatch), Hooks()

    @hooks.on(PreToolUse, timeout=FAR)
    async def waits(event: PreToolUse) -> None:
        await asyncio.sleep(0)

    for _ in range(50):
        await hooks.fire(BASH)

    assert len(timers) == 1


async def test_what_is_due_sooner_is_told_sooner() -> None:
    """A timer that was set for later does not keep anybody waiting, and later ones are still told."""
    loop = asyncio.get_running_loop()
    alarm, late, soon, never = alarm_of(loop), Sleeper(), Sleeper(), Sleeper()
    now = loop.time()

    alarm.set(never, now + FAR)
    alarm.set(late, now + 0.02)
    alarm.set(soon, now)
    await soon.told.wait()
    await late.told.wait()
    alarm.clear(never)

    assert (soon.times, late.times, never.times) == (1, 1, 0)


async def test_setting_it_again_replaces_the_time() -> None:
    """What was set first no longer counts, whether it was sooner or later."""
    loop = asyncio.get_running_loop()
    alarm, postponed, last = alarm_of(loop), Sleeper(), Sleeper()
    now = loop.time()

    alarm.set(postponed, now)
    alarm.set(postponed, now + FAR)
    alarm.set(last, now + 0.01)
    await last.told.wait()

    assert postponed.times == 0
    alarm.set(postponed, now)
    await postponed.told.wait()
    assert postponed.times == 1


async def test_what_is_told_may_ask_to_be_told_again() -> None:
    """As a hook that does not stop when it is asked to."""
    loop = asyncio.get_running_loop()
    stubborn = Sleeper(again_at=loop.time())

    alarm_of(loop).set(stubborn, loop.time())
    await stubborn.told.wait()

    assert stubborn.times == 2


async def test_timers_that_were_overtaken_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often one comes that is due sooner, a timer that rings in vain sets no other."""
    loop = asyncio.get_running_loop()
    timers, alarm, far = timers_of(loop, monkeypatch), alarm_of(loop), Sleeper()
    now = loop.time()
    alarm.set(far, now + FAR)

    for step in range(10):
        sooner = Sleeper()
        alarm.set(sooner, now + 0.001 * (10 - step))
        alarm.clear(sooner)
    last = Sleeper()
    alarm.set(last, now + 0.02)
    await last.told.wait()
    alarm.clear(far)

    assert len(timers) <= 14  # one for each that was the first, and those after them


async def test_the_timer_holds_nothing_of_the_hook_that_had_it_set() -> None:
    """It rings long after; the context of the hook's task is gone by then."""

    class Secret: ...

    variable: ContextVar[Secret] = ContextVar("variable")
    hooks = Hooks()

    @hooks.on(PreToolUse, timeout=FAR)
    async def waits(event: PreToolUse) -> None:
        await asyncio.sleep(0)

    async def fire() -> "weakref.ref[Secret]":
        variable.set(secret := Secret())
        await hooks.fire(BASH)
        return weakref.ref(secret)

    held = await asyncio.create_task(fire())
    await asyncio.sleep(0)  # the loop lets go of a task one turn after its end
    gc.collect()

    assert held() is None


def test_a_loop_is_not_kept_by_its_alarm() -> None:
    """A program that runs one loop after another keeps none of them."""

    async def wait() -> "weakref.ref[Any]":
        loop = asyncio.get_running_loop()
        alarm_of(loop).set(Sleeper(), loop.time() + FAR)
        return weakref.ref(loop)

    held = asyncio.run(wait())
    gc.collect()

    assert held() is None
