"""Hookline's engine inside programs that use the official Python SDK, with one line.

    options = ClaudeAgentOptions(hooks=for_sdk(hooks))

The rest of such a program stays as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hookline.engine import Engine, Verdict
from hookline.engine.step import UNWANTED
from hookline.errors import MissingExtra
from hookline.events import Event, spec_of
from hookline.hosts.claude_code.registration import plan
from hookline.hosts.claude_code.requests import answer_of
from hookline.replies import deny
from hookline.wire import claude

log = logging.getLogger("hookline.hosts.claude_code")
Callback = Callable[[Any, str | None, Any], Awaitable[Any]]


def for_sdk(hooks: Engine) -> dict[Any, list[Any]]:
    """What `ClaudeAgentOptions(hooks=…)` takes: one `HookMatcher` for each event the hooks there are now listen to."""
    try:
        from claude_agent_sdk import HookMatcher
    except ImportError:
        raise MissingExtra("for_sdk()", "claude") from None
    planned = plan(hooks)
    event_of = {kind.event_name: kind for kind in planned.events.values()}
    return {
        name: [
            HookMatcher(
                matcher=entry.matcher,
                hooks=[callback(hooks, event_of[name])],
                timeout=entry.timeout,
                on_failure=entry.on_failure,  # type: ignore[arg-type]
            )
            for entry in entries
        ]
        for name, entries in planned.hooks.items()
    }


def callback(hooks: Engine, kind: type[Event]) -> Callback:
    """The function the SDK calls for one event; a crash of a gate is a deny, elsewhere the SDK's to report."""

    async def ask(payload: Any, tool_use_id: str | None, context: Any) -> Any:
        try:
            verdict = await told_if_unwanted(hooks.fire(claude.decode_event(payload)))
            return claude.reply_object(answer_of(verdict), verdict.event)
        except Exception as problem:
            log.exception("hooks on %s could not be asked", kind.event_name)
            if not spec_of(kind).gate:
                raise
            reason = f"hooks could not be asked: {type(problem).__name__}: {problem}; {kind.event_name} fails closed"
            return claude.reply_object(deny(reason), kind.event_name)

    return ask


async def told_if_unwanted(firing: Coroutine[Any, Any, Verdict]) -> Verdict:
    """The verdict; when the SDK cancels its callback, the hook hears that its answer is no longer wanted."""
    task = asyncio.ensure_future(firing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel(UNWANTED)
        await asyncio.wait([task])
        raise
