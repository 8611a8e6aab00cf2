"""Connections to the hub: NATS, with our keys, and errors that say what to do."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.errors import FleetError, extra
from hookline.fleet.overview import Rollout
from hookline.fleet.subjects import POLICY_BUCKET, TARGET

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

log: logging.Logger = logging.getLogger("hookline.fleet")

IMPATIENCE = 10.0
"""Seconds after which a caller that waits for a connection is told why there is none."""

LOST = 5.0
"""Seconds after which a task that goes on is cancelled again."""


async def end(*tasks: asyncio.Task[Any], lost: float = LOST) -> None:
    """Cancel tasks until they have ended.

    Once is not always enough: `asyncio.wait_for` of Python 3.11 forgets a cancellation that comes with the answer.
    """
    going = set(tasks)
    while going:
        for task in going:
            task.cancel()
        _, going = await asyncio.wait(going, timeout=lost)
    await asyncio.gather(*tasks, return_exceptions=True)


async def read_rollout(js: JetStreamContext) -> Rollout | None:
    """The rollout that is under way or was the last."""
    from nats.js.errors import KeyNotFoundError

    bucket = await js.key_value(POLICY_BUCKET)
    try:
        entry = await bucket.get(TARGET)
    except KeyNotFoundError:
        return None
    return msgspec.json.decode(entry.value or b"", type=Rollout)


async def connect(
    url: str,
    *,
    seed: Path | None = None,
    inbox: str = "_INBOX",
    name: str = "hookline",
    patient: bool = False,
    on_back: Callable[[], Awaitable[None]] | None = None,
    on_problem: Callable[[str], None] | None = None,
    **more: Any,
) -> Client:
    """Connect; with `patient` go on trying for as long as it takes, else say after `IMPATIENCE` why it failed."""
    with extra("a fleet", "fleet"), _without_package("aiohttp"):  # it takes as long to import as NATS itself
        from nats.aio.client import Client
        from nats.errors import Error as NatsError
    if url.startswith(("ws://", "wss://")):
        _load_websockets(url)

    problems: list[str] = []

    async def on_error(problem: Exception) -> None:
        problems.append(_explained(problem))
        log.debug("%s: %s", url, problem)
        if not client.is_connected and (transport := client._transport) is not None:  # noqa: SLF001
            transport.close()  # type: ignore[no-untyped-call]  # an attempt that failed leaves its socket open
        if on_problem is not None:
            on_problem(problems[-1])

    options: dict[str, Any] = {
        "error_cb": on_error,
        "inbox_prefix": inbox.encode(),
        "name": name,
        "connect_timeout": 5,
        "reconnect_time_wait": 1,
        "max_reconnect_attempts": -1,
        "ping_interval": 20,
        **({"nkeys_seed": str(seed)} if seed is not None else {}),
        **({"reconnected_cb": on_back} if on_back is not None else {}),
        **more,
    }
    while True:
        client = Client()
        try:
            await asyncio.wait_for(
                client.connect(url, allow_reconnect=True, **options), None if patient else IMPATIENCE
            )
        except (NatsError, OSError, TimeoutError) as problem:
            with contextlib.suppress(Exception):
                await client.close()
            if not patient:
                why = problems[-1] if problems else str(problem) or f"no answer within {IMPATIENCE:g} s"
                raise FleetError(f"{url}: cannot connect to the hub: {why}") from None
            await asyncio.sleep(1)
        else:
            return client


@contextlib.contextmanager
def _without_package(name: str) -> Iterator[None]:
    """Imports in the `with` block do without a package that they would take if they could."""
    kept_out = name not in sys.modules
    if kept_out:
        sys.modules[name] = None  # type: ignore[assignment]  # what an import meets is then an ImportError
    try:
        yield
    finally:
        if kept_out:
            del sys.modules[name]


def _load_websockets(url: str) -> None:
    """Give NATS what it needs for an address with `ws://`."""
    from nats.aio import transport

    try:
        transport.aiohttp = importlib.import_module("aiohttp")  # type: ignore[attr-defined]
    except ImportError:
        raise FleetError(f"{url}: websockets need aiohttp; run `pip install aiohttp`") from None


def _explained(problem: Exception) -> str:
    """What went wrong, and what to do where that is known."""
    text = str(problem) or type(problem).__name__
    if "authorization" in text.lower():
        return (
            "the hub does not let this machine in: it was revoked, the hub was set up again, or its NATS cluster was "
            "not reloaded since; run `hookline fleet leave`, then join with a new token"
        )
    return text
