"""Being watched never slows a hook down or breaks it."""

import asyncio
import threading
from typing import Any

import pytest

from hookline import Hooks, Verdict, deny, message
from hookline.core.engine import Context, HookProgress, HookResponse, HookStarted
from hookline.core.engine.observers import Observers
from hookline.errors import HookError
from hookline.events import PreToolUse, Stop

BASH = PreToolUse(tool_name="Bash", session_id="s")


def watched(*, inline: bool = True) -> tuple[Hooks, list[Any]]:
    hooks = Hooks()
    seen: list[Any] = []

    @hooks.on(PreToolUse, status_message="checking…")
    async def check(event: Any, ctx: Context) -> Any:
        ctx.progress("stdout", "a")
        ctx.progress("stderr", "b")
        return deny("no")

    hooks.observe(seen.append, inline=inline)
    return hooks, seen


async def test_observers_see_every_hook_start_print_and_respond_and_every_verdict() -> None:
    """In that order, with one id, in the shapes of the wire's hook messages."""
    hooks, seen = watched()
    verdict = await hooks.fire(BASH)

    names = {"hook_id": seen[0].hook_id, "hook_name": "PreToolUse:Bash", "hook_event": "PreToolUse",
             "session_id": "s", "hook": "check"}  # fmt: skip
    assert seen == [
        HookStarted(**names, status_message="checking…", limit=30.0),
        HookProgress(**names, stdout="a", output="a"),
        HookProgress(**names, stdout="a", stderr="b", output="ab"),
        HookResponse(**names, outcome="success", result=verdict.outcomes[0]),
        verdict,
    ]


async def test_a_response_says_how_the_hook_ended() -> None:
    """`error` for a crash, `cancelled` for a timeout."""
    hooks = Hooks()
    seen: list[Any] = []

    @hooks.on(Stop)
    async def crashes(event: Any) -> None:
        raise ValueError

    @hooks.on(Stop, timeout=0.01)
    async def hangs(event: Any) -> None:
        await asyncio.Event().wait()

    hooks.observe(seen.append, inline=True)
    await hooks.fire(Stop())

    assert [notice.outcome for notice in seen if isinstance(notice, HookResponse)] == ["error", "cancelled"]
    assert seen[0].hook_name == "Stop"


async def test_an_observer_aside_is_told_in_a_thread_of_its_own() -> None:
    """Closing delivers what waits and ends the thread."""
    before = set(threading.enumerate())  # other sets may be watched, too
    hooks, seen = watched(inline=False)
    for _ in range(3):
        await hooks.fire(BASH)
    await hooks.aclose()
    await hooks.aclose()

    assert len([notice for notice in seen if isinstance(notice, Verdict)]) == 3
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("hookline-obs")]


async def test_a_failing_observer_is_logged_and_the_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Inline or aside."""

    def fails(notice: Any) -> None:
        raise ValueError("observer")

    for inline in (True, False):
        caplog.clear()
        hooks = Hooks()
        seen: list[Any] = []
        hooks.observe(fails, inline=inline)
        hooks.observe(seen.append, inline=inline)
        assert (await hooks.fire(BASH)).outcomes == ()
        await hooks.aclose()
        assert len(seen) == 1
        assert "an observer failed on Verdict" in caplog.text


async def test_a_slow_observer_slows_nothing_and_what_it_misses_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The queue is bounded; the loop goes on while it is emptied."""
    go_on = threading.Event()
    hooks = Hooks()
    hooks.observe(lambda notice: go_on.wait(20))
    for _ in range(10_010):
        hooks.engine.observers.notify(HookStarted(hook_id="", hook_name="", hook_event=""))

    assert hooks.engine.observers.dropped >= 9
    closing = asyncio.create_task(hooks.engine.observers.aclose(0.01))
    await asyncio.sleep(0.02)
    go_on.set()
    await closing
    assert "observers were too slow" in caplog.text
    hooks.engine.observers.notify(HookStarted(hook_id="", hook_name="", hook_event=""))  # nobody is there any more


async def test_an_observer_may_leave() -> None:
    """Events after that take the quick way again."""
    hooks, seen = watched()
    hooks.engine.observers.remove(seen.append)
    await hooks.fire(BASH)

    assert seen == []
    assert not hooks.engine.observers


async def test_an_inline_observer_may_answer_a_verdict() -> None:
    """What it says is merged into it."""
    hooks, _ = watched()
    hooks.observe(lambda notice: message("seen") if isinstance(notice, Verdict) else None, inline=True)

    assert (await hooks.fire(BASH)).reply == deny("no") | message("seen")


async def test_an_observer_that_comes_later_sees_the_next_event() -> None:
    """The quick way is given up as soon as somebody watches."""
    hooks = Hooks()
    seen: list[Any] = []
    for _ in range(2):
        await hooks.fire(BASH)
    hooks.observe(seen.append, inline=True)
    await hooks.fire(BASH)

    assert len(seen) == 1


def test_an_async_observer_is_refused() -> None:
    """Nobody would await it."""

    async def observer(notice: Any) -> None:
        return None

    class Callable:
        async def __call__(self, notice: Any) -> None:
            return None

    for one in (observer, Callable()):
        with pytest.raises(HookError, match="must be a plain function"):
            Hooks().observe(one)


def test_flush_says_if_it_took_too_long() -> None:
    """Waiting for a slow observer is bounded."""
    observers, go_on = Observers(), threading.Event()
    observers.add(lambda notice: go_on.wait(20), inline=False)
    observers.notify(HookStarted(hook_id="", hook_name="", hook_event=""))

    assert not observers.flush(0.01)
    go_on.set()
    assert observers.flush()
    observers.close()


async def test_an_observer_of_verdicts_only_leaves_events_on_the_quick_way() -> None:
    """It hears of every verdict and of nothing else."""

    class Verdicts:
        verdicts_only = True

        def __init__(self) -> None:
            self.seen: list[Any] = []

        def __call__(self, notice: Any) -> None:
            self.seen.append(notice)

    hooks, _ = watched()
    hooks.engine.observers.take()
    observer = Verdicts()
    hooks.observe(observer, inline=True)
    verdicts = [await hooks.fire(BASH) for _ in range(3)]

    assert observer.seen == verdicts


async def test_observers_that_write_are_closed_with_the_set(caplog: pytest.LogCaptureFixture) -> None:
    """One that cannot be closed is logged, and the others are closed all the same."""

    class Writes:
        closed = 0

        def __init__(self, problem: str = "") -> None:
            self.problem = problem

        def __call__(self, notice: Any) -> None:
            return None

        def close(self) -> None:
            if self.problem:
                raise OSError(self.problem)
            self.closed += 1

    hooks, good = Hooks(), Writes()
    for observer in (Writes("full disk"), good):
        hooks.observe(observer, inline=True)
    await hooks.aclose()

    assert good.closed == 1
    assert "an observer could not be closed" in caplog.text


def test_observers_say_which_events_they_want() -> None:
    """A host that fires an event only when somebody listens asks for this."""

    class Listener:
        events = ("PreModelCall",)

        def __call__(self, notice: object) -> None:
            return None

    hooks = Hooks()
    hooks.observe(Listener())

    assert hooks.engine.observers.wanted == {"PreModelCall"}
