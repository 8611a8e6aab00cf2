"""Prompts that no person typed."""

import asyncio
from pathlib import Path

from hookline import Hooks
from hookline.agent.session.session import Inbox
from hookline.core.engine import Outcome
from hookline.core.hooks.hook import Command
from hookline.events import Stop
from tests.agent.driving import agent_on


async def test_prompts_come_out_in_the_order_they_went_in() -> None:
    """Whoever waits gets the first as soon as it is there."""
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    assert inbox.empty()
    inbox.put("first")
    inbox.put("second")

    assert [await waiting, await inbox.get()] == ["first", "second"]
    assert inbox.empty()


async def test_waiting_takes_nothing_out() -> None:
    """It tells only that there is something, also to one who comes late or gives up in between."""
    inbox = Inbox()
    impatient, patient = (asyncio.create_task(inbox.wait()) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    inbox.put("it")
    await patient
    await inbox.wait()

    assert await inbox.get() == "it"


async def test_what_was_put_can_be_withdrawn_by_its_cause() -> None:
    """Only by that very one, and only until somebody has taken it."""
    inbox, one, another = Inbox(), ["same"], ["same"]
    inbox.put("by one", one)
    inbox.put("by nobody")
    inbox.put("by another", another)

    assert inbox.withdraw(one)
    assert not inbox.withdraw(one)
    assert [await inbox.get(), await inbox.get()] == ["by nobody", "by another"]
    assert not inbox.withdraw(another)


async def test_one_who_waits_is_not_let_through_to_nothing() -> None:
    """What came and was withdrawn before anybody looked did not come."""
    inbox, cause = Inbox(), object()
    waiting = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    inbox.put("withdrawn", cause)
    inbox.withdraw(cause)
    await asyncio.sleep(0)
    inbox.put("kept")

    assert await waiting == "kept"


async def test_a_hook_that_wakes_the_agent_may_have_a_preface_and_a_summary(tmp_path: Path) -> None:
    """`rewakeMessage` is for the model, `rewakeSummary` for whoever looks on; exit code 0 wakes nobody."""
    hooks = Hooks()
    action = Command(command="true", async_rewake=True, rewake_message="The tests failed:", rewake_summary="Red")
    (hook,) = hooks.add(Stop, action, name="tests")
    session = agent_on(tmp_path, "x", hooks=hooks).session

    session.wake(Outcome(hook=hook.name, exit_code=0, stderr="2 of 9"))
    assert session.inbox.empty()
    session.wake(Outcome(hook=hook.name, exit_code=2, stderr="2 of 9\n"))
    text = await session.inbox.get()
    assert "<summary>Red</summary>" in text
    assert text.endswith("<system-reminder>\nThe tests failed: 2 of 9\n</system-reminder>")
