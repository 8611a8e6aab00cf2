"""What connecting to a hub loads, and how what uses a connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

from hookline.fleet.connection import end

PROGRAM = """
import asyncio, sys
from hookline.errors import FleetError
from hookline.fleet import connection

async def attempt(url):
    for connection.IMPATIENCE in (0.2, 2.0, 20.0):
        try:
            await connection.connect(url)
        except FleetError as error:
            said = str(error)
        if "no answer within" not in said:  # a busy machine may take longer to hear that nobody listens
            break
    print(said)

for url in sys.argv[1:]:
    asyncio.run(attempt(url))
    print("loaded" if "aiohttp.client" in sys.modules else "not loaded")
"""


def attempts(*urls: str, before: str = "") -> list[str]:
    """What was said of each attempt at an address where nobody listens, and whether aiohttp is loaded by then."""
    argv = [sys.executable, "-c", before + PROGRAM, *urls]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_only_websockets_need_is_loaded_for_them_alone() -> None:
    """It takes as long to import as all the rest."""
    tcp, first, ws, second = attempts("nats://127.0.0.1:1", "ws://127.0.0.1:1")

    assert (first, second) == ("not loaded", "loaded")
    assert tcp.startswith("nats://127.0.0.1:1: cannot connect to the hub")
    assert ws.startswith("ws://127.0.0.1:1: cannot connect to the hub: Cannot connect to host 127.0.0.1:1")


def test_websockets_without_aiohttp_say_what_is_missing() -> None:
    """No traceback."""
    said = attempts("ws://127.0.0.1:1", before="import sys; sys.modules['aiohttp'] = None\n")

    assert said == ["ws://127.0.0.1:1: websockets need aiohttp; run `pip install aiohttp`", "not loaded"]


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
