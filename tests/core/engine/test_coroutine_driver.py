"""Driving a hook's coroutine: timeouts and cancellations, told apart, leave nothing behind."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from hookline import Hooks, deny
from hookline.core.engine import Context, Verdict, coroutine_driver
from hookline.core.engine.context import bind
from hookline.core.engine.coroutine_driver import UNWANTED, Suspended, drive, start
from hookline.core.engine.verdict import Status
from hookline.errors import HookFailed, HookTimeout
from hookline.events import Notification, PreToolUse

BASH = PreToolUse(tool_name="Bash")
for_ever = asyncio.Event


WATCHED = False


@pytest.fixture(autouse=True, params=["on the quick way", "on the slow way"])
def _(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this holds whether somebody watches or not."""
    monkeypatch.setitem(globals(), "WATCHED", request.param == "on the slow way")


def set_of(*calls: Callable[..., Any], timeout: float = 20, grace: float = 0.02, **options: Any) -> Hooks:
    hooks = Hooks(grace=grace, **options)
    if WATCHED:
        hooks.observe(lambda notice: None, inline=True)
    for call in calls:
        hooks.on(PreToolUse, timeout=timeout)(call)
    return hooks


def context_of(timeout: float, spent: float = 0.0) -> Context:
    """Where a hook runs that began a while ago."""
    hooks = set_of(print, timeout=timeout)
    return Context(BASH, bind(hooks.hooks[0], hooks.engine), hooks.engine.clock() - spent)


async def cancelled_while_running(hooks: Hooks, started: asyncio.Event, event: Any = BASH) -> asyncio.Task[Verdict]:
    """Fire, wait until the hook is under way, cancel the task, and see it end."""
    task = asyncio.get_running_loop().create_task(hooks.fire(event))
    await asyncio.wait_for(started.wait(), 10)
    task.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.done()
    return task


async def test_a_timeout_reaches_the_hook_and_its_context() -> None:
    """The hook is cancelled, and `ctx.cancelled` says why."""
    seen: list[Any] = []

    async def hangs(event: Any, ctx: Context) -> None:
        try:
            await for_ever().wait()
        except asyncio.CancelledError:
            seen.append(ctx.cancelled.reason)
            raise

    verdict = await set_of(hangs, timeout=0.02).fire(BASH)

    assert seen == ["timeout"]
    assert verdict.outcomes[0].status is Status.TIMEOUT
    assert verdict.outcomes[0].error == "gave no reply within 0.02 s"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancellation_from_outside_goes_through_and_is_no_timeout() -> None:
    """Whoever cancels `fire` gets a cancelled task; the hook's context says `cancelled`."""
    started, seen = asyncio.Event(), []

    async def hangs(event: Any, ctx: Context) -> None:
        started.set()
        try:
            await for_ever().wait()
        finally:
            asyncio.get_running_loop().call_soon(lambda: seen.append(ctx.cancelled.reason))

    for order in ("sequential", "parallel"):
        started.clear()
        task = await cancelled_while_running(set_of(hangs, order=order), started)
        assert task.cancelled()

    await asyncio.sleep(0)
    assert seen == ["cancelled", "cancelled"]


async def test_a_hook_that_swallows_its_timeout_is_closed_and_its_late_answer_is_nobodys() -> None:
    """It is asked three times, then taken out of service; the rest goes on."""
    asked = 0

    async def stubborn(event: Any) -> Any:
        nonlocal asked
        while True:
            try:
                await for_ever().wait()
            except asyncio.CancelledError:
                asked += 1

    async def late(event: Any) -> Any:
        try:
            await for_ever().wait()
        except asyncio.CancelledError:
            return deny("too late")

    verdict = await set_of(stubborn, late, timeout=0.02, order="parallel").fire(BASH)

    assert [outcome.status for outcome in verdict.outcomes] == [Status.TIMEOUT, Status.TIMEOUT]
    assert asked == 2
    assert "too late" not in verdict.reason


async def test_a_hook_that_cannot_even_be_closed_is_left_behind() -> None:
    """Swallowing everything does not help it."""

    async def immortal(event: Any) -> Any:
        for _ in range(3):
            try:
                await for_ever().wait()
            except BaseException:
                continue
        await for_ever().wait()

    verdict = await set_of(immortal, timeout=0.02).fire(BASH)

    assert verdict.outcomes[0].status is Status.TIMEOUT


async def test_a_hook_that_swallows_a_cancellation_from_outside_delays_it_no_longer_than_its_grace() -> None:
    """Cancellation always propagates; the context says so as soon as the hook is thrown out of its `await`."""
    started, seen = asyncio.Event(), []

    async def stubborn(event: Any, ctx: Context) -> Any:
        started.set()
        while True:
            try:
                await for_ever().wait()
            except asyncio.CancelledError:
                seen.append(ctx.cancelled.reason)

    task = await cancelled_while_running(set_of(stubborn), started)

    assert task.cancelled()
    assert seen == ["cancelled"] * 3


async def test_whoever_fired_can_say_that_the_answer_is_unwanted() -> None:
    """Then the context hears of it before the hook does."""
    started, seen = asyncio.Event(), []

    async def hangs(event: Any, ctx: Context) -> Any:
        started.set()
        try:
            await for_ever().wait()
        finally:
            seen.append(ctx.cancelled.reason)

    task = asyncio.get_running_loop().create_task(set_of(hangs).fire(BASH))
    await started.wait()
    task.cancel(UNWANTED)
    await asyncio.wait([task])

    assert task.cancelled()
    assert seen == ["cancelled"]


async def test_a_crash_while_being_cancelled_is_a_cancellation_with_its_cause() -> None:
    """The cleanup's exception is not lost."""
    started = asyncio.Event()

    async def crashes(event: Any) -> Any:
        started.set()
        try:
            await for_ever().wait()
        finally:
            raise ValueError("cleanup")

    hooks = set_of(crashes)
    causes = []

    async def host() -> None:
        try:
            await hooks.fire(BASH)
        except asyncio.CancelledError as error:
            causes.append(error.__cause__)
            raise

    task = asyncio.get_running_loop().create_task(host())
    await started.wait()
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert str(causes[0]) == "cleanup"


async def test_a_hooks_own_timeout_is_its_own_business() -> None:
    """`asyncio.timeout` in a hook expires and is handled there; nobody else hears of it."""
    seen: list[Any] = []

    async def careful(event: Any, ctx: Context) -> Any:
        try:
            async with asyncio.timeout(0.01):
                await for_ever().wait()
        except TimeoutError:
            seen.append(ctx.cancelled.is_set())
            await asyncio.sleep(0)
            seen.append(ctx.cancelled.is_set())
            return deny("slow backend")

    verdict = await set_of(careful).fire(BASH)

    assert verdict.reason == "slow backend"
    assert seen == [False, False]


async def test_a_hooks_own_timeout_may_clean_up_and_its_time_goes_on() -> None:
    """While its own scope unwinds it is hurried; after that it has its whole time again."""

    async def careful(event: Any) -> Any:
        try:
            async with asyncio.timeout(0.01):
                try:
                    await for_ever().wait()
                finally:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            await asyncio.sleep(1.2)  # longer than the grace, shorter than the limit
            return deny("done")

    verdict = await set_of(careful, grace=1).fire(BASH)

    assert verdict.reason == "done"


async def test_without_grace_a_hook_past_its_time_cannot_stay_for_its_clean_up() -> None:
    """`grace=0` is a time like another: whoever fired does not wait for what the hook does in `finally`."""

    async def stays(event: Any) -> Any:
        try:
            await for_ever().wait()
        finally:
            await for_ever().wait()

    verdict = await set_of(stays, timeout=0.01, grace=0).fire(BASH)

    assert (verdict.blocked, verdict.outcomes[0].status) == (True, Status.TIMEOUT)


async def test_a_hooks_own_task_group_is_its_own_business() -> None:
    """A failing child cancels the hook's body, not whoever fired."""

    async def fails() -> None:
        raise ValueError("child")

    async def grouped(event: Any) -> Any:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                await for_ever().wait()
        except* ValueError:
            pass
        return deny("child failed")

    assert (await set_of(grouped).fire(BASH)).reason == "child failed"


async def test_a_hook_that_waits_for_a_cancelled_task_may_handle_it() -> None:
    """The cancelled one is somebody else."""

    async def waits(event: Any) -> Any:
        other = asyncio.get_running_loop().create_task(for_ever().wait())
        asyncio.get_running_loop().call_soon(other.cancel)
        try:
            await other
        except asyncio.CancelledError:
            return deny("the other was cancelled")

    assert (await set_of(waits).fire(BASH)).reason == "the other was cancelled"


async def test_a_hook_that_cancels_its_own_task_cancels_whoever_fired() -> None:
    """That is what it asked for: hooks run in the caller's task."""

    async def cancels(event: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    task = asyncio.get_running_loop().create_task(set_of(cancels).fire(BASH))
    await asyncio.wait([task])

    assert task.cancelled()


async def test_a_task_cancelled_just_before_it_fires_is_cancelled() -> None:
    """A request that was made before the hook began is not the hook's."""

    async def waits(event: Any) -> Any:
        await asyncio.sleep(0)

    async def host() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await set_of(waits).fire(BASH)

    task = asyncio.get_running_loop().create_task(host())
    await asyncio.wait([task])

    assert task.cancelled()


async def test_hooks_can_be_fired_while_a_cancellation_is_handled() -> None:
    """An agent that was cancelled still fires SessionEnd: hooks wait, and time out, as ever."""
    said: list[Any] = []

    async def waits(event: Any) -> Any:
        await asyncio.sleep(0.001)
        return deny("heard")

    async def hangs(event: Any) -> Any:
        await for_ever().wait()

    async def host() -> None:
        try:
            await for_ever().wait()
        except asyncio.CancelledError:
            said.append(await set_of(waits).fire(BASH))
            said.append(await set_of(hangs, timeout=0.01).fire(BASH))
            raise

    task = asyncio.get_running_loop().create_task(host())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert task.cancelling() == 1
    assert said[0].reason == "heard"
    assert said[1].outcomes[0].status is Status.TIMEOUT


async def test_a_timeout_of_an_outer_hook_ends_the_inner_fire() -> None:
    """Nested events are part of the hook that fires them."""
    inner: list[str] = []

    async def hangs(event: Any) -> Any:
        try:
            await for_ever().wait()
        finally:
            inner.append("ended")

    async def outer(event: Any, ctx: Context) -> Any:
        await ctx.fire(Notification())

    hooks = set_of(outer, timeout=0.02)
    hooks.on(Notification, timeout=20)(hangs)
    verdict = await hooks.fire(BASH)

    assert verdict.outcomes[0].status is Status.TIMEOUT
    assert inner == ["ended"]


async def test_a_cancellation_and_a_timeout_at_once_are_a_cancellation() -> None:
    """Whoever is cancelled must be, whatever the hook's clock says."""
    started = asyncio.Event()

    async def slow_to_stop(event: Any) -> Any:
        started.set()
        try:
            await for_ever().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            raise

    task = asyncio.get_running_loop().create_task(set_of(slow_to_stop, timeout=0.02, grace=1).fire(BASH))
    await started.wait()
    await asyncio.sleep(0.03)
    task.cancel()
    await asyncio.wait([task], timeout=10)

    assert task.cancelled()


async def test_a_hook_with_an_async_generator_is_timed_out_like_any_other() -> None:
    """The generator is closed with the hook."""
    closed: list[bool] = []

    async def ticks() -> AsyncIterator[int]:
        try:
            while True:
                await asyncio.sleep(0.001)
                yield 1
        finally:
            closed.append(True)

    async def consumes(event: Any) -> Any:
        async for _ in ticks():
            pass

    verdict = await set_of(consumes, timeout=0.02).fire(BASH)
    await asyncio.get_running_loop().shutdown_asyncgens()

    assert verdict.outcomes[0].status is Status.TIMEOUT
    assert closed == [True]


async def test_an_exception_thrown_into_the_hook_can_be_handled_there() -> None:
    """A hook that waits for what asyncio does not know gets asyncio's complaint."""

    class Odd:
        def __await__(self) -> Any:
            yield "not a future"

    async def odd(event: Any) -> Any:
        try:
            await Odd()
        except RuntimeError:
            return deny("complained")

    assert (await set_of(odd).fire(BASH)).reason == "complained"


def test_a_hook_that_does_not_wait_needs_no_event_loop() -> None:
    """Driven by hand, `fire` ends at its first step."""

    async def answers(event: Any) -> Any:
        return deny("at once")

    with pytest.raises(StopIteration) as ended:
        set_of(answers).fire(BASH).send(None)

    assert ended.value.value.reason == "at once"


def test_a_hook_that_waits_outside_a_task_fails_and_is_closed() -> None:
    """There is nobody to wake it."""
    closed: list[bool] = []

    class Pause:
        def __await__(self) -> Any:
            yield

    async def waits(event: Any) -> Any:
        try:
            await Pause()
        finally:
            closed.append(True)

    with pytest.raises(StopIteration) as ended:
        set_of(waits).fire(BASH).send(None)

    assert ended.value.value.blocked
    assert "only works in an asyncio task" in ended.value.value.reason
    assert closed == [True]


async def test_a_hook_that_waits_in_a_bare_callback_fails_too() -> None:
    """A running loop without a task is not enough."""
    problems: list[BaseException] = []

    async def waits() -> None:
        await asyncio.sleep(0)

    def callback() -> None:
        suspended = start(waits())
        assert isinstance(suspended, Suspended)
        try:
            drive(suspended, context_of(1)).__await__().send(None)
        except StopIteration as done:
            problems.append(done.value.error)

    asyncio.get_running_loop().call_soon(callback)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert [type(problem) for problem in problems] == [HookFailed]


async def test_closing_the_one_who_waits_closes_the_hook() -> None:
    """A coroutine that is dropped takes its hook along."""
    closed: list[bool] = []

    async def waits() -> None:
        try:
            await for_ever().wait()
        finally:
            closed.append(True)

    suspended = start(waits())
    driver = drive(suspended, context_of(20)).__await__()
    driver.send(None)
    driver.close()

    assert closed == [True]


async def test_the_limit_that_was_stated_is_the_one_told() -> None:
    """People read the hook's timeout, not what was left of it."""

    async def waits() -> None:
        await for_ever().wait()

    suspended = start(waits())

    late = await drive(suspended, context_of(5, spent=4.99))

    assert isinstance(late.error, HookTimeout)
    assert "within 5 s" in str(late.error)


async def test_hooks_that_fire_while_they_are_asked_do_not_get_in_each_others_way() -> None:
    """Each coroutine under way has whoever steps it to itself, however deep they are nested."""
    inner: list[bool] = []

    async def asks_again(event: PreToolUse) -> Any:
        depth = int(event.tool_name)
        if depth:
            verdict = await hooks.fire(PreToolUse(tool_name=str(depth - 1)))
            inner.append(verdict.blocked)
            await asyncio.sleep(0)
        return deny(f"at depth {depth}")

    hooks = set_of(asks_again)

    verdicts = await asyncio.gather(*(hooks.fire(PreToolUse(tool_name="5")) for _ in range(20)))

    assert [verdict.reason for verdict in verdicts] == ["at depth 5"] * 20
    assert inner == [True] * 100


async def test_a_great_many_hooks_that_waited_at_once_leave_little_behind() -> None:
    """Who stepped them is kept for the next, but not all of them."""

    async def waits(event: PreToolUse) -> None:
        await asyncio.sleep(0)

    hooks = set_of(waits)
    await asyncio.gather(*(hooks.fire(BASH) for _ in range(500)))

    assert 0 < len(coroutine_driver.idle) <= coroutine_driver._MOST_IDLE


async def test_an_answer_is_not_kept_by_whoever_stepped_the_hook() -> None:
    """What a hook said is the caller's alone."""

    class Answer(dict[str, Any]):
        pass

    said: list[weakref.ref[Answer]] = []

    async def waits(event: PreToolUse) -> Any:
        answer = Answer()
        said.append(weakref.ref(answer))
        if len(said) > 1:
            await asyncio.sleep(0)
        return answer

    hooks = set_of(waits)
    for _ in range(2):
        await hooks.fire(BASH)

    assert [ref() for ref in said] == [None, None]


async def test_the_timer_holds_nothing_of_the_hook_that_had_it_set() -> None:
    """A loop lets go of a timer long after it was cancelled; the context of the hook's task is gone by then."""

    class Secret: ...

    variable: ContextVar[Secret] = ContextVar("variable")

    async def waits(event: Any) -> None:
        await asyncio.sleep(0)

    async def fire() -> "weakref.ref[Secret]":
        variable.set(secret := Secret())
        await set_of(waits, timeout=1000).fire(BASH)
        return weakref.ref(secret)

    held = await asyncio.create_task(fire())
    await asyncio.sleep(0)  # the loop lets go of a task one turn after its end
    gc.collect()

    assert held() is None
