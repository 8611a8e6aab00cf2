"""What a connection to a hub needs, and how what uses a connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

from hookline.fleet.connection import end

PROGRAM = """
import asyncio, sys
sys.modules["aiohttp"] = None
from hookline.errors import FleetError
from hookline.fleet import connection

try:
    asyncio.run(connection.connect("ws://127.0.0.1:1"))
except FleetError as error:
    print(error)
"""


def test_websockets_without_aiohttp_say_what_is_missing() -> None:
    """No traceback."""
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout

    assert said.startswith("ws://127.0.0.1:1: cannot connect to the hub: ")
    assert "pip install aiohttp" in said


async def test_a_task_that_loses_a_cancellation_ends_all_the_same() -> None:
    """As one does on Python 3.11 if the hub's answer comes at that moment; a hub that was stopped then went on."""

    async def forgetful() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    task, other = asyncio.create_task(forgetful()), asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)  # both wait
    await asyncio.wait_for(end(task, other, lost=0.01), 60)

    assert (task.cancelled(), other.cancelled()) == (True, True)


async def test_ending_nothing_is_no_error() -> None:
    """A hub that never started has no tasks."""
    await end()
