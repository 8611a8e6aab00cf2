"""What a hook is handed besides the event."""

import asyncio
import os
import threading
from typing import Any

from hookline import Hooks
from hookline.core.engine import Cancelled, Context
from hookline.core.engine.context import bind
from hookline.events import PreToolUse, Stop


async def test_a_context_says_where_and_when_a_hook_runs() -> None:
    """Most of it is the event's, the set's or the hook's."""
    seen: list[Any] = []
    hooks = Hooks(env={"A": "1"}, timeout=7)

    @hooks.on(PreToolUse, name="mine", timeout=5)
    async def check(event: Any, ctx: Context) -> None:
        seen.append((ctx.session_id, ctx.cwd, dict(ctx.env), ctx.tool_use_id, ctx.timeout, ctx.log.name))
        assert 0 < ctx.deadline - hooks.engine.clock() <= 5
        ctx.progress("stdout", "nobody watches")

    verdict = await hooks.fire(PreToolUse(session_id="s", cwd="/x", tool_use_id="t"))

    assert verdict.failures == ()
    assert seen == [("s", "/x", {"A": "1"}, "t", 5, "hookline.hook.mine")]


async def test_without_an_environment_of_its_own_a_set_has_the_process_environment() -> None:
    """And an event without a tool has no tool call."""
    hooks = Hooks()
    ctx = Context(Stop(), bind(hooks.add(Stop, lambda event: None)[0], hooks.engine))

    assert ctx.env is os.environ
    assert ctx.tool_use_id == ""
    assert ctx.deadline == ctx.deadline  # asked for the first time, the clock starts


async def test_cancelled_can_be_awaited_and_asked() -> None:
    """Whoever waits is woken, even after giving up waiting once; the first reason stays."""
    cancelled = Cancelled()
    impatient, patient = (asyncio.create_task(cancelled.wait()) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.sleep(0)

    assert not cancelled
    cancelled.set("timeout")
    cancelled.set("cancelled")
    await asyncio.wait_for(patient, 10)
    await cancelled.wait()
    assert (bool(cancelled), cancelled.reason) == (True, "timeout")


def test_cancelled_can_be_awaited_on_another_loop() -> None:
    """A hook with a loop of its own in a thread is woken there; a loop that is gone is no problem."""
    cancelled, waiting, woken = Cancelled(), threading.Event(), threading.Event()

    async def wait() -> None:
        asyncio.get_running_loop().call_soon(waiting.set)
        await cancelled.wait()
        woken.set()

    thread = threading.Thread(target=lambda: asyncio.run(wait()))
    thread.start()
    waiting.wait(60)
    gone = asyncio.new_event_loop()
    cancelled._waiting = (*cancelled._waiting, (gone, asyncio.Event()))
    gone.close()
    cancelled.set("timeout")
    thread.join(60)

    assert woken.is_set()


async def test_a_hook_knows_whether_anybody_can_be_woken() -> None:
    """Without a host that listens, what it says late waits for `pending`."""
    hooks = Hooks()
    seen: list[bool] = []

    @hooks.on(PreToolUse)
    async def look(event: PreToolUse, ctx: Context) -> None:
        seen.append(ctx.can_wake)

    await hooks.fire(PreToolUse(tool_name="Bash"))
    hooks.engine.on_late = lambda outcome: None
    await hooks.fire(PreToolUse(tool_name="Bash"))

    assert seen == [False, True]
