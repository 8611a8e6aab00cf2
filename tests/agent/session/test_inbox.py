"""Prompts nobody typed."""

import asyncio

from hookline.agent.session.inbox import Inbox


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
