"""What connecting to a hub loads."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, sys
from hookline.errors import FleetError
from hookline.fleet import connection

connection.IMPATIENCE = 0.2

async def attempt(url):
    try:
        await connection.connect(url)
    except FleetError as error:
        print(error)

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
