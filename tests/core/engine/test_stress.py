"""Ten thousand events at once, with everything going wrong, leave nothing behind."""

import asyncio
import logging
import random
import threading
import time
from typing import Any

import pytest

from hookline import Hooks, allow, context, deny
from hookline.core.engine.verdict import Status
from hookline.events import PreToolUse
from tests.resources import descriptors

EVENTS = 10_000


def test_ten_thousand_events_with_crashes_hangs_and_cancellations_leave_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No task, no thread, no file descriptor is left, and every event that was not cancelled has its verdict."""
    caplog.set_level(logging.CRITICAL, logger="hookline")
    asyncio.run(_one(Hooks()))  # whatever a first run leaves for good
    threads, before = threading.active_count(), descriptors()

    counts = asyncio.run(_many())

    assert sum(counts.values()) == EVENTS
    assert min(counts["ok"], counts["denied"], counts["cancelled"]) > EVENTS / 50
    _until(lambda: threading.active_count() <= threads)
    assert descriptors() <= before


async def _one(hooks: Hooks) -> None:
    async with hooks:
        hooks.on(PreToolUse)(_blocking)
        await hooks.fire(PreToolUse(tool_name="t0"))


async def _many() -> dict[str, int]:
    dice = random.Random(7)  # the same accidents every time
    hooks = {order: _wild(dice, order) for order in ("sequential", "parallel")}
    async with hooks["sequential"], hooks["parallel"]:
        before = asyncio.all_tasks()
        fires = [
            asyncio.create_task(
                hooks["parallel" if number % 5 == 0 else "sequential"].fire(
                    PreToolUse(tool_name=f"t{number % 7}"), deadline=0.5 if number % 11 == 0 else None
                )
            )
            for number in range(EVENTS)
        ]
        await asyncio.sleep(0.05)
        for fire in dice.sample(fires, EVENTS // 5):
            fire.cancel()
        await asyncio.wait(fires, timeout=200)
        for each in hooks.values():
            await each.drain(timeout=20)
        assert asyncio.all_tasks() <= before
        counts = {"ok": 0, "denied": 0, "cancelled": 0}
        for fire in fires:
            word = "cancelled" if fire.cancelled() else "denied" if fire.result().blocked else "ok"
            counts[word] += 1
        return counts


def _wild(dice: random.Random, order: Any) -> Hooks:
    hooks = Hooks(order=order, grace=0.05)

    async def crashes(event: Any) -> Any:
        if dice.random() < 0.1:
            raise ValueError("crash")

    async def hangs(event: Any) -> Any:
        if dice.random() < 0.3:
            await asyncio.Event().wait()
        await asyncio.sleep(dice.random() / 50)
        return allow("in time")

    async def stubborn(event: Any) -> Any:
        try:
            await asyncio.sleep(dice.random() / 10)
        except asyncio.CancelledError:
            if dice.random() < 0.5:
                await asyncio.sleep(0.01)
                return deny("too late")
            raise

    async def nests(event: Any, ctx: Any) -> Any:
        async with asyncio.timeout(0.2):
            await ctx.fire(PreToolUse(tool_name="inner"))
        return context("nested")

    async def aside(event: Any) -> Any:
        await asyncio.sleep(dice.random() / 20)

    hooks.on(PreToolUse, match="t1|t3|t5", on_failure="continue")(crashes)
    hooks.on(PreToolUse, match="t2|t3|inner", timeout=0.1)(hangs)
    hooks.on(PreToolUse, match="t4|t5", timeout=0.05, on_failure="continue")(stubborn)
    hooks.on(PreToolUse, match="t5", timeout=0.3)(nests)
    hooks.on(PreToolUse, match="t6", background=True, timeout=0.2)(aside)
    hooks.on(PreToolUse, match="t0", timeout=20)(_blocking)
    return hooks


def _blocking(event: Any) -> Any:
    time.sleep(0.0001)


def _until(holds: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, [thread.name for thread in threading.enumerate()]
        time.sleep(0.01)


async def test_functions_that_hang_are_abandoned_counted_and_end_by_themselves() -> None:
    """An agent is never stopped by a blocked function, and its thread is gone once it returns."""
    let_go, begun = threading.Event(), list[int]()

    def blocked(event: Any) -> Any:
        begun.append(threading.get_ident())
        let_go.wait(60)

    before = threading.active_count()
    hooks = Hooks()
    hooks.on(PreToolUse, timeout=0.05)(blocked)
    fires = [asyncio.create_task(hooks.fire(PreToolUse(tool_name="Bash"))) for _ in range(5)]
    await asyncio.sleep(0)
    _until(lambda: len(begun) == 5)  # while the loop stands still: a call that has not begun is not abandoned
    verdicts = await asyncio.gather(*fires)

    assert {verdict.outcomes[0].status for verdict in verdicts} == {Status.TIMEOUT}
    runner: Any = hooks.engine.runners.of(hooks.hooks[0])
    assert runner.abandoned == 5
    let_go.set()
    await asyncio.to_thread(_until, lambda: runner.abandoned == 0)
    await hooks.aclose()
    await asyncio.get_running_loop().shutdown_default_executor()
    _until(lambda: threading.active_count() <= before)
