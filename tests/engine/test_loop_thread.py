"""`hooks.fire_sync`: verdicts for programs without asyncio."""

import asyncio
import inspect
import multiprocessing
import signal
import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest

from hookline import Command, Hooks, deny
from hookline.engine import loop_thread
from hookline.engine.fires import is_unheard
from hookline.errors import UnknownEvent
from hookline.events import PreToolUse

CALL = PreToolUse(tool_name="Bash", tool_input={"command": "rm -rf /"})


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
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        loop_thread.run_sync(work())

    assert cancelled.wait(30)


def test_work_that_is_cancelled_is_an_error_for_its_caller() -> None:
    """Not a cancellation of the caller, who was not cancelled: a gate takes it for a failure, and closes."""

    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        loop_thread.run_sync(work())


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

    assert not is_unheard(object(), PreToolUse)
    assert is_unheard(hooks, PreToolUse)
