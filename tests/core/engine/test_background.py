"""Hooks that go on by themselves."""

import asyncio
import threading
from typing import Any

import pytest

from hookline import Hooks, Reply, background, context
from hookline.core.engine import Context
from hookline.core.engine.dispatch import Background
from hookline.core.engine.verdict import Status
from hookline.events import Notification, PreToolUse

BASH = PreToolUse(tool_name="Bash")


async def late(text: str = "late") -> Reply:
    await asyncio.sleep(0)
    return context(text)


async def test_a_hook_declared_in_the_background_delays_nothing_and_answers_later() -> None:
    """Its outcome is collected once."""
    hooks = Hooks()

    @hooks.on(PreToolUse, background=True)
    async def aside(event: Any) -> Reply:
        return await late()

    verdict = await hooks.fire(BASH)

    assert verdict.reply == Reply()
    assert verdict.outcomes[0].status is Status.BACKGROUND
    assert hooks.pending() == []
    (outcome,) = await hooks.drain()
    assert (outcome.hook, outcome.status, outcome.reply) == ("aside", Status.OK, context("late"))
    assert hooks.pending() == await hooks.drain() == []


async def test_a_reply_of_background_goes_on_with_its_work() -> None:
    """With work or without, as a Reply or as a mapping."""
    hooks = Hooks()
    hooks.on(PreToolUse, name="works")(_returning(lambda: background(late())))
    hooks.on(PreToolUse, name="at_once")(_returning(lambda: background(_now())))
    hooks.on(PreToolUse, name="nothing")(_returning(background))
    hooks.on(PreToolUse, name="mapping")(_returning(lambda: {"async": True, "asyncTimeout": 5}))

    verdict = await hooks.fire(BASH)

    assert {outcome.status for outcome in verdict.outcomes} == {Status.BACKGROUND}
    replies = {outcome.hook: outcome.reply for outcome in await hooks.drain()}
    assert replies == {"works": context("late"), "at_once": context("now"), "nothing": Reply(), "mapping": Reply()}


async def _now() -> Reply:
    return context("now")


def _returning(make: Any) -> Any:
    async def hook(event: Any) -> Any:
        return make()

    return hook


async def test_a_host_may_be_told_of_late_outcomes_as_they_come() -> None:
    """They can be collected all the same."""
    hooks, told = Hooks(), asyncio.Event()
    hooks.engine.on_late = lambda outcome: told.set()
    hooks.on(PreToolUse, background=True)(_returning(lambda: context("late")))
    await hooks.fire(BASH)
    await asyncio.wait_for(told.wait(), 10)

    assert [outcome.reply for outcome in hooks.pending()] == [context("late")]


async def test_a_late_failure_is_an_outcome_and_denies_nothing() -> None:
    """Crash, nonsense, timeout: recorded, with the hook's name; nobody waits for a verdict any more."""

    async def crash() -> Any:
        await asyncio.sleep(0)
        raise ValueError("late")

    async def crash_at_once() -> Any:
        raise ValueError("now")

    async def number() -> Any:
        return 42

    async def hang() -> Any:
        await asyncio.Event().wait()

    hooks = Hooks()
    for work in (crash, crash_at_once, number):
        hooks.on(PreToolUse, name=work.__name__)(_returning(lambda work=work: background(work())))
    hooks.on(PreToolUse, name="hang")(_returning(lambda: background(hang(), timeout=0.02)))
    await hooks.fire(BASH)

    late = {outcome.hook: outcome for outcome in await hooks.drain()}
    assert late["crash"].error == "raised ValueError: late"
    assert late["crash_at_once"].error == "raised ValueError: now"
    assert "answered with `int`" in str(late["number"].error)
    assert late["hang"].status is Status.TIMEOUT
    assert all(outcome.reply == Reply() for outcome in late.values())


async def test_closing_waits_up_to_a_limit_then_cancels_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """What is cancelled is an outcome too."""
    hooks, cancelled = Hooks(), []

    @hooks.on(PreToolUse, background=True)
    async def for_ever(event: Any, ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    await hooks.fire(BASH)
    (outcome,) = await hooks.aclose(limit=0.01)

    assert cancelled == [True]
    assert outcome.status is Status.CANCELLED
    assert "1 background hook(s) were cancelled" in caplog.text


async def test_a_background_hook_cancelled_before_it_began_is_dropped() -> None:
    """Whoever ends the loop that early wants no answers."""
    hooks = Hooks()
    hooks.on(PreToolUse, background=True)(_returning(lambda: None))
    await hooks.fire(BASH)
    assert len(hooks.engine.background._tasks) == 1
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()

    assert await hooks.drain() == []


async def test_background_hooks_of_another_loop_are_cancelled_there() -> None:
    """Draining waits for this loop's; closing ends everybody's, even those of a loop that is gone."""
    hooks, going = Hooks(), threading.Event()

    @hooks.on(PreToolUse, background=True)
    async def for_ever(event: Any) -> None:
        going.set()
        await asyncio.Event().wait()

    ended = threading.Event()

    def other_loop() -> None:
        async def run() -> None:
            await hooks.fire(BASH)
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait(tasks)

        asyncio.run(run())
        ended.set()

    thread = threading.Thread(target=other_loop)
    thread.start()
    await asyncio.to_thread(going.wait, 60)

    assert await hooks.drain() == []
    late = await hooks.aclose()
    await asyncio.to_thread(ended.wait, 60)
    thread.join(60)
    assert ended.is_set()
    assert [outcome.status for outcome in late + hooks.pending()] == [Status.CANCELLED]


def test_background_hooks_of_a_loop_that_is_gone_are_not_waited_for() -> None:
    """Closing the set is not stopped by them."""
    hooks = Hooks()
    hooks.on(PreToolUse, background=True)(_returning(lambda: None))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(hooks.fire(BASH))
    (task,) = hooks.engine.background._tasks
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # that it never ran is the point
    loop.close()

    assert asyncio.run(hooks.aclose()) == []
    task.get_coro().close()


async def test_a_background_hook_fires_events_of_its_own() -> None:
    """The context works after the event that started it is over."""
    hooks, seen = Hooks(), []

    @hooks.on(PreToolUse, background=True)
    async def aside(event: Any, ctx: Context) -> None:
        seen.append((await ctx.fire(Notification())).event.event_name)

    await hooks.fire(BASH)
    await hooks.drain()

    assert seen == ["Notification"]


async def test_what_goes_on_can_be_ended_while_the_set_stays_open() -> None:
    """Who answers in time is heard, the rest is cancelled, and the next event is judged as ever."""
    hooks = Hooks()
    for_ever = asyncio.Event()

    @hooks.on(PreToolUse, background=True)
    async def quick(event: Any) -> Reply:
        return await late()

    @hooks.on(PreToolUse, background=True)
    async def slow(event: Any) -> None:
        await for_ever.wait()

    await hooks.fire(BASH)
    ended = await hooks.engine.end_background(1)

    assert {outcome.hook: outcome.status for outcome in ended} == {"quick": Status.OK, "slow": Status.CANCELLED}
    assert len((await hooks.fire(BASH)).outcomes) == 2
    await hooks.aclose(0)


async def test_work_that_cannot_be_run_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A defect of ours is not silent, and nobody waits for an outcome that never comes."""

    async def broken() -> Any:
        raise RuntimeError("no such runner")

    work = Background()
    work.start(broken(), None)

    assert await work.drain() == []
    assert "a background hook could not be run" in caplog.text
