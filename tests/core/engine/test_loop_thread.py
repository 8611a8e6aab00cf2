"""`hooks.fire_sync`: verdicts for programs without asyncio."""

import asyncio
import gc
import inspect
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from hookline import Command, Hooks, deny
from hookline.core.engine import loop_thread
from hookline.core.engine.engine import has_no_listeners
from hookline.errors import UnknownEvent
from hookline.events import PreToolUse

CALL = PreToolUse(tool_name="Bash", tool_input={"command": "rm -rf /"})


@pytest.fixture
def unused_loop() -> None:
    """As in a program that has not fired anything yet."""
    loop_thread._close()


def denying() -> Hooks:
    hooks = Hooks()

    async def no(event: Any) -> Any:
        await asyncio.sleep(0)
        return deny("no")

    hooks.add(PreToolUse, no)
    return hooks


def test_a_program_without_asyncio_gets_a_verdict() -> None:
    """Hooks that wait, threads and processes work as they do under `fire`."""
    hooks = denying()
    hooks.add(PreToolUse, lambda event: None, name="thread", priority=2)
    hooks.add(PreToolUse, Command(command="cat >/dev/null"), name="process", priority=1)

    verdict = hooks.fire_sync(CALL)

    assert (verdict.blocked, [(one.hook, one.status) for one in verdict.outcomes]) == (
        True, [("thread", "ok"), ("process", "ok"), ("no", "ok")])  # fmt: skip


async def test_it_works_where_a_loop_is_running() -> None:
    """The caller's loop stands still, the hooks run on their own."""
    assert denying().fire_sync(CALL).blocked


async def test_it_works_beside_a_loop_in_another_thread() -> None:
    """Any thread may ask."""
    assert (await asyncio.to_thread(denying().fire_sync, CALL)).blocked


def test_a_hook_may_call_it() -> None:
    """From the private loop itself it does not wait for itself."""
    inner, outer = denying(), Hooks()

    async def asks(event: Any) -> Any:
        return deny("inner said no") if inner.fire_sync(CALL).blocked else None

    outer.add(PreToolUse, asks)

    assert outer.fire_sync(CALL).reason == "inner said no"


def test_many_threads_at_once() -> None:
    """Each gets the verdict of its own event."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny(event.tool_use_id))
    reasons: dict[str, str] = {}

    def ask(name: str) -> None:
        reasons[name] = hooks.fire_sync(PreToolUse(tool_name="Bash", tool_use_id=name)).reason

    threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert reasons == {str(number): str(number) for number in range(20)}


# -- in the caller's thread, and on the loop's ---------------------------------------------------------------------

caller: ContextVar[str] = ContextVar("caller", default="nobody")


async def where() -> tuple[Any, ...]:
    """The thread, the loop and the task it runs in, and whose context."""
    return threading.current_thread(), asyncio.get_running_loop(), asyncio.current_task(), caller.get()


@pytest.mark.usefixtures("unused_loop")
def test_what_waits_for_nothing_runs_in_the_callers_thread() -> None:
    """In a task, on the one loop, in the caller's context, as it would elsewhere; no thread is started for it."""
    caller.set("the test")

    thread, loop, task, context = loop_thread.run_sync(where())

    assert (thread, context, isinstance(task, asyncio.Task)) == (threading.current_thread(), "the test", True)
    assert loop_thread.run_sync(where())[1] is loop
    assert loop_thread._shared is not None
    assert not loop_thread._shared._thread.is_alive()


@pytest.mark.usefixtures("unused_loop")
def test_what_has_to_wait_goes_on_in_the_loops_thread() -> None:
    """In the same task, on the same loop and in the same context; so does all that comes after it."""
    caller.set("the test")

    async def waiting() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        before = await where()
        await asyncio.sleep(0)
        return before, await where()

    before, after = loop_thread.run_sync(waiting())
    later = loop_thread.run_sync(where())

    assert (before[0], after[0].name, later[0]) == (threading.current_thread(), "hookline-sync", after[0])
    assert before[1:] == after[1:]
    assert later[1] is before[1]


def _task(loop: asyncio.AbstractEventLoop, done: Callable[[], None], end: socket.socket) -> Any:
    async def work() -> None:
        await asyncio.sleep(0)
        done()

    return asyncio.ensure_future(work())


@pytest.mark.usefixtures("unused_loop")
@pytest.mark.parametrize(
    "leave",
    [
        _task,
        lambda loop, done, end: loop.call_soon(done),
        lambda loop, done, end: loop.call_later(0, done),
        lambda loop, done, end: loop.run_in_executor(None, int).add_done_callback(lambda _: done()),
        lambda loop, done, end: loop.add_writer(end, lambda: (loop.remove_writer(end), done())),
        lambda loop, done, end: loop.add_reader(end, lambda: (loop.remove_reader(end), done())),
    ],
    ids=["task", "call_soon", "call_later", "executor", "writer", "reader"],
)
def test_what_is_left_on_the_loop_is_done_though_nobody_waits_for_it(leave: Callable[..., Any]) -> None:
    """A hook may start something and answer at once."""
    done = threading.Event()
    end, other = socket.socketpair()

    async def work() -> Any:
        other.send(b"x")
        return leave(asyncio.get_running_loop(), done.set, end)

    with end, other:
        kept = loop_thread.run_sync(work())

        assert done.wait(60)
        del kept


@pytest.mark.usefixtures("unused_loop")
def test_threads_take_turns() -> None:
    """Hooks of a program without asyncio never run at the same time: between two awaits they need no lock."""
    hooks, inside, most = Hooks(), [0], [0]

    @hooks.on(PreToolUse)
    async def count(event: PreToolUse) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        sum(range(2000))
        inside[0] -= 1

    def ask() -> None:
        for _ in range(200):
            hooks.fire_sync(CALL)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1]


def _blocked(answers: Any) -> None:
    answers.put(denying().fire_sync(CALL).blocked)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    """The parent's thread is not in the child."""
    denying().fire_sync(CALL)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_blocked, args=(answers,))
    child.start()

    assert answers.get(timeout=60) is True
    child.join()


WIRE = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/p"}


def test_a_mapping_is_an_event_of_the_wire() -> None:
    """In any dialect; what is not an event is refused, with what to write."""
    hooks = denying()
    snake = {"event": "pre_tool_use", "tool_name": "Bash", "tool_input": {}}

    assert hooks.fire_sync(WIRE).event == PreToolUse(tool_name="Bash", tool_input={"command": "ls"}, cwd="/p")
    assert hooks.fire_sync(snake).blocked
    with pytest.raises(UnknownEvent, match="did you mean `PreToolUse`"):
        hooks.fire_sync({**WIRE, "hook_event_name": "PreTooluse"})


async def test_a_mapping_fires_with_a_deadline_too() -> None:
    """The other arguments are as ever."""
    assert (await denying().fire(WIRE, deadline=60, only="no")).blocked


def test_a_loop_without_its_thread_is_not_used() -> None:
    """What runs in a child right after `fork`: the next `fire_sync` starts a loop of its own."""
    hooks = denying()
    assert hooks.fire_sync(CALL).blocked
    before = loop_thread._shared

    loop_thread._forget()

    assert hooks.fire_sync(CALL).blocked
    assert loop_thread._shared is not before


def test_a_caller_that_is_interrupted_cancels_what_it_waits_for() -> None:
    """Ctrl-C ends the wait at once, and nothing goes on behind the program's back."""
    cancelled = threading.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        loop_thread.run_sync(work())

    assert cancelled.wait(30)


@pytest.mark.usefixtures("unused_loop")
def test_a_caller_that_is_interrupted_while_it_runs_the_work_itself_hears_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ctrl-C is raised in the work, which is over with it, and out of the call; nobody is told a second time."""
    gc.collect()  # what an earlier test left may have something to say
    caplog.clear()

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        loop_thread.run_sync(work())

    assert denying().fire_sync(CALL).blocked  # whatever the interruption left to do is done
    gc.collect()
    assert not caplog.records


def test_work_that_is_cancelled_is_an_error_for_its_caller() -> None:
    """Not a cancellation of the caller, who was not cancelled: a gate takes it for a failure, and closes."""

    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        loop_thread.run_sync(work())


@pytest.mark.usefixtures("unused_loop")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_ends_leaves_its_parents_loop_alone() -> None:
    """The loop that nobody runs yet is in the child, too, and the two share what wakes it."""
    loop_thread.run_sync(where())

    child = os.fork()
    if not child:
        warnings.simplefilter("ignore")  # as in a program
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)

    assert [denying().fire_sync(CALL).blocked for _ in range(3)] == [True] * 3


def test_a_program_ends_without_a_word(tmp_path: Path) -> None:
    """Nothing of ours is left open, whether the loop had to serve or not."""
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, sys\nfrom hookline.core.engine.loop_thread import run_sync\n"
        "async def work():\n    for _ in sys.argv[1:]:\n        await asyncio.sleep(0)\n    print('ran')\n"
        "run_sync(work())\n"
    )
    for waits in ([], ["once"]):
        done = subprocess.run(
            [sys.executable, "-X", "dev", str(program), *waits], capture_output=True, text=True, check=True
        )

        assert (done.stdout, done.stderr) == ("ran\n", "")


def test_closing_what_was_never_used_is_nothing() -> None:
    """Nor is closing it twice."""
    loop_thread._close()
    loop_thread._close()

    assert denying().fire_sync(CALL).blocked


def test_a_call_that_was_interrupted_before_it_was_sent_off_never_starts() -> None:
    """Its coroutine is closed, so that nobody is warned of one that was never awaited."""

    async def work() -> None:
        raise AssertionError("it ran")

    coroutine = work()
    loop_thread._Call(coroutine).cancel()

    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_whether_anybody_would_hear_is_asked_of_sets_of_hooks_only() -> None:
    """What has no engine may hear everything; a set without a hook has to be asked once to know."""
    hooks = Hooks()
    hooks.fire_sync(PreToolUse(tool_name="Bash"))

    assert not has_no_listeners(object(), PreToolUse)
    assert has_no_listeners(hooks, PreToolUse)
