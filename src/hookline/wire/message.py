"""Lines of type `hook_event` and `hook_response`, as an agent and its host exchange them. Pure.

An event is claude's object with `"type": "hook_event"`. A response names the tool call it answers and says
`continue`, `suppress_output`, `decision`, `system_message` and `reason`; empty strings say nothing, and a block without
a `reason` takes its `stop_reason`. What these words cannot say (a rewritten input, say) rides along as claude's own
`hookSpecificOutput`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from hookline.errors import EventError, ReplyError
from hookline.events import Event
from hookline.replies import NOTHING, Reply, allow
from hookline.wire import claude
from hookline.wire.outputs import Output, Seconds, typed
from hookline.wire.reading import reply_of
from hookline.wire.text import is_blank, parse_object, write

__all__ = ["decode_event", "decode_reply", "encode_event", "encode_reply"]

_EVENT, _RESPONSE = "hook_event", "hook_response"


def decode_event(data: bytes | str | Mapping[str, Any]) -> Event:
    """The event of a `hook_event` line; fields it does not know stay readable in `event.extra`."""
    payload = parse_object(data)
    if payload.get("type") != _EVENT:
        raise EventError(f"event: `type`: expected `{_EVENT}`, got `{payload.get('type')}`")
    return claude.event_from({key: value for key, value in payload.items() if key != "type"})


def encode_event(event: Event) -> bytes:
    """The event as one line, without the newline."""
    return write({"type": _EVENT, **claude.event_object(event)}, event.event_name, EventError)


class _Response(Output, rename="lower"):
    """A response's own words; the empty string says nothing."""

    suppress_output: bool | UnsetType = UNSET
    stop_reason: str | UnsetType = UNSET
    decision: Literal["approve", "block", ""] | UnsetType = UNSET  # type: ignore[assignment]
    system_message: str | UnsetType = UNSET
    terminal_sequence: str | UnsetType = UNSET
    async_timeout: Seconds | UnsetType = UNSET
    type: Literal["hook_response"] | UnsetType = UNSET


def decode_reply(data: bytes | str | Mapping[str, Any], event: Event | str) -> Reply:
    """The reply of a `hook_response` line to `event`."""
    if is_blank(data):
        return NOTHING
    name = claude.event_name(event)
    output = typed(parse_object(data, f"reply to {name}", ReplyError), name, _Response)
    approved = output.decision == "approve"
    if output.decision == "":
        output.decision = UNSET
    elif output.decision == "block" and not output.reason:
        output.reason = output.stop_reason
    reply = reply_of(output, name)
    return reply | allow() if approved and name == "PermissionRequest" else reply


def encode_reply(reply: Reply, event: Event | str) -> bytes:
    """The reply as one `hook_response` line, without the newline; it names the tool call that `event` is about."""
    name = claude.event_name(event)
    said = claude.reply_object(reply, name)
    call = getattr(event, "tool_use_id", "")
    body = {"type": _RESPONSE, **({"tool_use_id": call} if call else {}), "continue": True}
    body |= {_WORDS.get(key, key): value for key, value in said.items()}
    return write(body, f"reply to {name}", ReplyError)


_WORDS: MappingProxyType[str, str] = MappingProxyType({
    "suppressOutput": "suppress_output",
    "stopReason": "stop_reason",
    "systemMessage": "system_message",
    "terminalSequence": "terminal_sequence",
    "asyncTimeout": "async_timeout",
})  # fmt: skip
