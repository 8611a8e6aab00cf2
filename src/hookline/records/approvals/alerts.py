"""What people are told unasked: many denials, a hook that fails, a gate that timed out, a machine that is silent."""

from __future__ import annotations

import asyncio
import logging

from hookline.core.engine import Status, Verdict
from hookline.errors import ConfigError
from hookline.records.approvals.config import load_approvals
from hookline.records.approvals.inbox import Unreachable, ask_once

log: logging.Logger = logging.getLogger("hookline.approvals")
_SECONDS = 2.0


async def alert(kind: str, title: str, text: str) -> None:
    """Tell the people of `approvals`, if its `alerts` are on; the same `kind` is not told again for a while."""
    try:
        settings = load_approvals()
        if settings is not None and settings.alerts is not None:
            async with asyncio.timeout(_SECONDS):
                await ask_once({"do": "alert", "kind": kind, "title": title, "text": text}, _SECONDS)
    except (ConfigError, TimeoutError, Unreachable) as problem:
        log.warning("no one could be told `%s`: %s", title, str(problem) or "it took too long")


async def report(verdict: Verdict) -> None:
    """Tell what went wrong in a verdict; a deny is counted, unless a person gave it."""
    for outcome in verdict.failures:
        slow = outcome.status is Status.TIMEOUT
        title = f"hook `{outcome.hook}` {'timed out' if slow else 'failed'} on {verdict.event.event_name}"
        await alert(f"{outcome.status} {outcome.hook}", title, outcome.error or "")
    if verdict.blocked and verdict.approval is None:
        await alert(
            "denied", "", f"the last one: {verdict.event.tool_name or verdict.event.event_name}: {verdict.reason}"
        )
