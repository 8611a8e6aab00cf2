"""The host's callbacks as hooks of our engine (FACTS.md §10).

An error or a nonsense answer counts as no answer, unless `onFailure` says block. A host that does not answer in time,
or is gone, cannot have agreed: before a tool, a prompt and a subagent that is a deny.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from msgspec import Raw

from hookline import errors
from hookline.agent.stream_json.output import StreamOutput
from hookline.core.engine import Context
from hookline.core.hooks.declare import make_hook
from hookline.core.hooks.hook import Hook, OnFailure, parse_matcher
from hookline.core.wire import claude
from hookline.core.wire.strict import check_object
from hookline.events import CATALOG, Event
from hookline.hosts.claude_code.channels import CliChannel
from hookline.hosts.claude_code.messages import CallbackMatcher, HookCallback
from hookline.replies import Reply, deny

log: logging.Logger = logging.getLogger("hookline.hosts.claude_code")

DEFAULT_TIMEOUT = 600.0
NEEDS_ANSWER = frozenset({"PreToolUse", "UserPromptSubmit", "SubagentStart"})  # here silence is a no
MARGIN = 5.0
#: what the host said went wrong is for the log: it is not meant for the model
_FAILED = "callback {} failed: the host replied with an error or an invalid answer"


def host_hooks(server: CliChannel, table: Mapping[str, Sequence[CallbackMatcher]], output: StreamOutput) -> list[Hook]:
    """The hooks of an `initialize`; what makes no sense in it is told, and the rest holds."""
    hooks: list[Hook] = []
    for event, entries in table.items():
        if event not in CATALOG:
            output.inform(f"initialize: unknown event `{event}`; its callbacks are never called", level="warning")
            continue
        for entry in entries:
            hooks += _entry(server, event, entry, output, len(hooks))
    return hooks


def _entry(server: CliChannel, event: str, entry: CallbackMatcher, output: StreamOutput, count: int) -> list[Hook]:
    on_failure: OnFailure = "continue" if entry.on_failure in (None, "continue") else "block"
    if entry.on_failure not in (None, "block", "continue"):
        output.inform(f"initialize: unknown onFailure `{entry.on_failure}` is read as `block`", level="warning")
    seconds = entry.timeout or DEFAULT_TIMEOUT
    try:
        parse_matcher(entry.matcher)
    except errors.MatcherError as problem:
        output.inform(f"initialize: {event}: {problem}; its callbacks are never called", level="warning")
        return []
    return [
        make_hook(
            [event], _callback(server, name, seconds, strict=on_failure == "block"), match=entry.matcher,
            timeout=seconds + MARGIN, on_failure=on_failure, name=f"callback {name} #{count + number}", source="host",
            rejudge=False,
        )
        for number, name in enumerate(entry.callback_ids)
    ]  # fmt: skip


def _callback(
    server: CliChannel, name: str, seconds: float, *, strict: bool
) -> Callable[[Event, Context], Awaitable[Reply | None]]:
    async def ask_host(event: Event, ctx: Context) -> Reply | None:
        sent = Raw(claude.encode_event(event))
        request = HookCallback(callback_id=name, input=sent, tool_use_id=ctx.tool_use_id or str(uuid4()))
        try:
            async with asyncio.timeout(seconds):
                answer = await server.ask(request)
        except TimeoutError:
            return _silence(event, f"hook callback timed out after {round(seconds * 1000)}ms")
        except (errors.HostGone, errors.UnknownCallback) as problem:
            return _silence(event, str(problem))
        except errors.RequestRefused as problem:
            log.warning("hook callback %s failed: %s", name, problem.error)
            raise errors.HookFailed(_FAILED.format(name)) from None
        return _understood(event, name, answer, strict=strict)

    return ask_host


def _silence(event: Event, why: str) -> Reply | None:
    if event.event_name in NEEDS_ANSWER:
        return deny(f"{event.event_name} hook did not respond ({why}); nothing was done")
    raise errors.HookTimeout(why)


def _understood(event: Event, name: str, answer: Any, *, strict: bool) -> Reply | None:
    if not isinstance(answer, dict):
        raise errors.HookFailed(_FAILED.format(name))
    try:
        if strict:
            check_object(answer, event.event_name)
        if answer.get("async") is True:
            return None
        return claude.decode_reply(answer, event)
    except errors.ReplyMismatch as problem:
        if event.event_name in NEEDS_ANSWER:
            return deny(f"{event.event_name} hook failed: {problem}; nothing was done")
        raise errors.HookFailed(str(problem)) from None
    except errors.ReplyError as problem:
        log.warning("hook callback %s: %s", name, problem)
        raise errors.HookFailed(_FAILED.format(name)) from None
