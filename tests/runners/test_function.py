"""Python functions: `async def` on the loop, `def` on a thread that can be abandoned."""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from hookline import Hooks, Reply, deny
from hookline.core.engine.verdict import Status
from hookline.errors import HookFailed
from hookline.events import PreToolUse
from hookline.runners.function import ThreadedCall, Threads

BASH = PreToolUse(tool_name="Bash")
var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="unset")


def until(holds: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hookline-function"]


async def test_a_def_runs_off_the_loop_with_the_callers_context() -> None:
    """On a thread, with its context variables; what it returns is its answer, awaited if need be."""
    seen: list[Any] = []

    def blocking(event: Any, ctx: Any) -> Reply:
        seen.append((threading.current_thread().name, var.get(), ctx.cwd))
        return deny("no")

    async def later() -> Reply:
        return deny("awaited")

    hooks = Hooks()
    hooks.on(PreToolUse, match="Bash")(blocking)
    hooks.on(PreToolUse, match="Read")(lambda event: later())
    var.set("mine")
    async with hooks:
        assert (await hooks.fire(PreToolUse(tool_name="Bash", cwd="/x"))).reason == "no"
        assert (await hooks.fire(PreToolUse(tool_name="Read"))).reason == "awaited"
    assert seen == [("hookline-function", "mine", "/x")]


async def test_inline_opts_out_of_the_thread() -> None:
    """Such a function runs on the loop, whatever it costs."""
    seen: list[Any] = []
    hooks = Hooks()
    hooks.on(PreToolUse, inline=True)(lambda event: seen.append(threading.current_thread()))
    await hooks.fire(BASH)

    assert seen == [threading.main_thread()]


async def test_an_async_function_watched_by_somebody_takes_the_same_path() -> None:
    """Once and background hooks, too, are performed by the runner."""

    async def no(event: Any) -> Reply:
        return deny("no")

    hooks = Hooks()
    hooks.on(PreToolUse, once=True)(no)

    assert (await hooks.fire(BASH)).reason == "no"


async def test_a_def_that_outlives_its_time_is_abandoned_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """It can ask whether anybody still waits; closing says how many are left."""
    begun, let_go, asked = threading.Event(), threading.Event(), []

    def slow(event: Any, ctx: Any) -> Reply:
        begun.set()
        let_go.wait(60)
        asked.append((ctx.cancelled.is_set(), ctx.cancelled.reason))
        return deny("late")

    hooks = Hooks()
    hooks.on(PreToolUse, timeout=0.05)(slow)
    firing = asyncio.create_task(hooks.fire(BASH))
    await asyncio.sleep(0)
    assert begun.wait(30)  # while the loop stands still: a call that has not begun is not abandoned
    verdict = await firing
    assert verdict.outcomes[0].status is Status.TIMEOUT
    runner: Any = hooks.engine.runners.of(hooks.hooks[0])
    assert runner.abandoned == 1
    await hooks.aclose()
    assert "1 function hook(s) still run in abandoned threads" in caplog.text
    let_go.set()
    until(lambda: asked and not ours())
    assert asked == [(True, "timeout")]


async def test_threads_are_bounded() -> None:
    """Of a hundred calls no more run at once than there may; a waiting one is not begun if nobody waits for it."""
    threads, begun, gate = Threads(most=2), [], threading.Event()
    lock, at_once = threading.Lock(), [0]

    def work() -> None:
        with lock:
            at_once.append(at_once[-1] + 1)
        time.sleep(0.001)
        with lock:
            at_once.append(at_once[-1] - 1)

    await asyncio.gather(*(threads.call(work) for _ in range(100)))
    assert max(at_once) <= 2
    busy = [asyncio.create_task(threads.call(lambda: gate.wait(20))) for _ in range(2)]
    waiting = asyncio.create_task(threads.call(lambda: begun.append(1)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait([waiting])
    gate.set()
    await asyncio.gather(*busy)
    await asyncio.to_thread(until, lambda: not ours())
    assert begun == []
    assert threads.abandoned == 0


async def test_an_abandoned_thread_makes_room_for_another() -> None:
    """Functions that hang never starve those that come after."""
    threads, begun, gate = Threads(most=1), threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        gate.wait(120)

    hung = asyncio.create_task(threads.call(hangs))
    waiting = asyncio.create_task(threads.call(lambda: "served"))
    await asyncio.to_thread(begun.wait, 60)
    hung.cancel()

    assert await asyncio.wait_for(waiting, 60) == "served"
    assert threads.abandoned == 1
    gate.set()
    await asyncio.to_thread(until, lambda: threads.abandoned == 0)
    await asyncio.to_thread(until, lambda: not ours())


async def test_threads_without_a_call_end_by_themselves() -> None:
    """And new ones are started when they are needed again."""
    threads = Threads()

    assert await threads.call(lambda: 1) == 1
    await asyncio.to_thread(until, lambda: not ours())
    assert await threads.call(lambda: 2) == 2
    await asyncio.to_thread(until, lambda: not ours())


async def test_closing_ends_threads_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, however long they would have waited; a later call still has a thread, which ends after it."""
    monkeypatch.setattr("hookline.runners.function._IDLE_SECONDS", 3600.0)
    threads = Threads()
    assert await threads.call(lambda: 1) == 1
    threads.close()
    await asyncio.to_thread(until, lambda: not ours())

    assert await threads.call(lambda: 2) == 2
    await asyncio.to_thread(until, lambda: not ours())


async def test_when_the_system_gives_no_thread_a_call_waits_for_one_of_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said in the log; the hook's own time bounds the waiting."""
    threads = Threads()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    gate = threading.Event()
    busy = asyncio.create_task(threads.call(lambda: gate.wait(20)))
    await asyncio.sleep(0.01)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        waiting = asyncio.create_task(threads.call(lambda: "served"))
        await asyncio.sleep(0)
    gate.set()
    await busy

    assert await asyncio.wait_for(waiting, 10) == "served"
    assert "no further thread for function hooks" in caplog.text
    await asyncio.to_thread(until, lambda: not ours())


async def test_exceptions_come_home() -> None:
    """Even the one that a future cannot carry."""
    threads = Threads()

    def raises(error: BaseException) -> Any:
        raise error

    with pytest.raises(KeyError):
        await threads.call(lambda: raises(KeyError("x")))
    with pytest.raises(HookFailed, match="raised StopIteration: odd"):
        await threads.call(lambda: raises(StopIteration("odd")))


def test_an_answer_after_the_loop_was_closed_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """There is nobody left to tell."""
    caplog.set_level(logging.DEBUG, logger="hookline.function")
    loop = asyncio.new_event_loop()
    call = ThreadedCall(lambda: 1, loop)
    loop.close()
    call.run()

    assert "after its loop was closed" in caplog.text


async def test_an_answer_nobody_waits_for_is_dropped() -> None:
    """The function was done, but the one who asked left before hearing it."""
    call = ThreadedCall(lambda: 1, asyncio.get_running_loop())
    call.run()
    call.result.cancel()
    await asyncio.sleep(0)

    assert call.result.cancelled()
