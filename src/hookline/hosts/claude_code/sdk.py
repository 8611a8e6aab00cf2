"""Hookline's engine inside programs that use the official Python SDK, with one line.

    options = ClaudeAgentOptions(hooks=for_sdk(hooks))

The rest of such a program stays as it is.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from hookline.core.engine import HookSet, Verdict
from hookline.core.engine.coroutine_driver import UNWANTED
from hookline.core.wire import claude
from hookline.errors import HooksIgnored, extra
from hookline.events import Event
from hookline.hosts.answer import answer, fails_closed, refusal
from hookline.hosts.claude_code.registration import plan
from hookline.replies import Reply, deny

Callback = Callable[[Any, str | None, Any], Awaitable[Any]]


def for_sdk(hooks: HookSet) -> dict[Any, list[Any]]:
    """What `ClaudeAgentOptions(hooks=…)` takes: one `HookMatcher` for each event the hooks there are now listen to.

    Hooks on events that the CLI never sends to the SDK are warned about.
    """
    with extra("for_sdk()", "claude"):
        from claude_agent_sdk import HookMatcher
    planned = plan(hooks)
    for name in planned.missed:
        problem = f"the Claude CLI never calls the SDK's hooks on {name}; put that hook in a settings file"
        warnings.warn(f"{problem}, or use `ClaudeClient`", HooksIgnored, stacklevel=3)
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


def callback(hooks: HookSet, kind: type[Event]) -> Callback:
    """The function the SDK calls for one event; a crash of a gate is a deny, elsewhere the SDK's to report."""
    asked, host = _Cancellable(hooks), _SdkCodec(kind)

    async def ask(payload: Any, tool_use_id: str | None, context: Any) -> Any:
        return await answer(asked, payload, host)

    return ask


class _SdkCodec(Struct, frozen=True):
    """Claude Code's words, as the dictionaries that the SDK hands over and takes back."""

    kind: type[Event]

    def decode(self, payload: Any) -> Event:
        return claude.decode_event(payload)

    def encode(self, reply: Reply, event: Event) -> dict[str, Any]:
        return claude.reply_object(reply, event)

    def refuse(self, problem: BaseException, payload: Any, event: Event | None) -> dict[str, Any]:
        if not fails_closed(self.kind):
            raise problem
        return claude.reply_object(deny(refusal(problem, self.kind)), self.kind.event_name)


class _Cancellable(Struct, frozen=True):
    """Hooks that are told when the SDK cancels its callback: their answer is no longer wanted."""

    hooks: HookSet

    async def fire(self, event: Event) -> Verdict:
        task = asyncio.ensure_future(self.hooks.fire(event))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel(UNWANTED)
            await asyncio.wait([task])
            raise
