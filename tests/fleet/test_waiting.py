"""What a fleet's command in the foreground waits for, and that it ends then."""

import asyncio
import contextlib
import os

import pytest

from hookline.cli.commands.fleet import until_eof, until_one_ends


async def forgetful() -> None:
    """Loses its first cancellation, as Python 3.11's `wait_for` does if an answer comes at that moment."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


async def test_a_leaf_ends_with_its_service_even_if_a_cancellation_is_lost() -> None:
    """Such a leaf went on for ever, at the full speed of a core: the end of its pipe stayed readable."""
    reader, writer = os.pipe()
    os.close(writer)
    try:
        await asyncio.wait_for(until_one_ends(forgetful(), until_eof(reader)), 120)

        assert not asyncio.get_running_loop().remove_reader(reader)
    finally:
        os.close(reader)


async def test_what_went_wrong_is_raised() -> None:
    """And the others have ended by then."""

    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await until_one_ends(asyncio.Event().wait(), fails())
    assert asyncio.all_tasks() == {asyncio.current_task()}
