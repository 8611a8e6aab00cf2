"""Connections to the hub: NATS, with our keys, and errors that say what to do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.errors import FleetError, MissingExtra

if TYPE_CHECKING:
    from nats.aio.client import Client

log = logging.getLogger("hookline.fleet")


async def connect(
    url: str,
    *,
    seed: Path | None = None,
    inbox: str = "_INBOX",
    name: str = "hookline",
    patient: bool = False,
    on_back: Callable[[], Awaitable[None]] | None = None,
    **more: Any,
) -> Client:
    """Connect; with `patient` go on trying for as long as it takes, else say after ten seconds why it failed."""
    try:
        import nats
        from nats.errors import Error as NatsError
    except ImportError:
        raise MissingExtra("a fleet", "fleet") from None

    problems: list[str] = []

    async def on_error(problem: Exception) -> None:
        problems.append(str(problem) or type(problem).__name__)
        log.debug("%s: %s", url, problem)

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
        try:
            return await asyncio.wait_for(nats.connect(url, allow_reconnect=True, **options), None if patient else 10)
        except (NatsError, OSError, TimeoutError) as problem:
            if not patient:
                why = problems[-1] if problems else str(problem) or "no answer within 10 s"
                raise FleetError(f"{url}: cannot connect to the hub: {why}") from None
            await asyncio.sleep(1)
