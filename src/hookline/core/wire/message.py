"""Lines of type `hook_event` and `hook_response`, as an agent and its host exchange them. Pure.

An event is claude's object with `"type": "hook_event"`. A response names the tool call it answers and says, always,
`continue`, `suppress_output`, `decision`, `system_message` and `reason`; empty strings say nothing, and a block without
a `reason` takes its `stop_reason`. What these words cannot say (a rewritten input, say) rides along as claude's own
`hookSpecificOutput`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from hookline.core.wire import claude
from hookline.core.wire.decode import reply_of
from hookline.core.wire.json_text import is_blank, parse_object, write
from hookline.core.wire.output_types import Output, Seconds, typed
from hookline.errors import EventError, ReplyError
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Decision, Reply, allow

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


FIELDS = (*_Response.__struct_encode_fields__, "tool_use_id")
"""Every word that an answer may use."""


def decode_reply(data: bytes | str | Mapping[str, Any], event: Event | str) -> Reply:
    """The reply of a `hook_response` line to `event`."""
    if is_blank(data):
        return NOTHING
    name = claude.event_name(event)
    output = typed(parse_object(data, f"reply to {name}", ReplyError), name, _Response)
    approved = output.decision == "approve"
    if output.decision == "":
        output.decision = UNSET
    elif output.decision == "block":
        _read_block(output)
    reply = reply_of(output, name)
    return reply | allow() if approved and name == "PermissionRequest" else reply


def _read_block(output: Any) -> None:
    """A block is a refusal of this one thing, also with `continue: false`; with both reasons it stops the agent, too.

    `permissionDecision` may say that it is a milder refusal: a person has to be asked.
    """
    stops = output.reason and output.stop_reason is not UNSET
    if not output.reason:
        output.reason = output.stop_reason
    if output.continue_ is False and not stops:
        output.continue_ = UNSET
    if getattr(output.hook_specific_output, "permissionDecision", None) in ("ask", "defer"):
        output.decision = UNSET


def encode_reply(reply: Reply, event: Event | str) -> bytes:
    """The reply as one `hook_response` line, without the newline; it names the tool call that `event` is about.

    A host that knows no more than the seed's words must not run what it may not run: whatever is not let through on a
    gate has `continue: false` and `decision: "block"`.
    """
    name = claude.event_name(event)
    said = claude.reply_object(reply, name)
    refused = spec_of(name).gate and reply.decision > Decision.ALLOW
    body = response(
        tool_use_id=(event.tool_use_id or "") if isinstance(event, Event) else "",
        goes_on=not (reply.stop or refused),
        suppress_output=reply.suppress_output,
        decision="block" if refused else _word(reply, said),
        system_message=said.pop("systemMessage", ""),
        reason=_reason(reply),
    )
    if reply.stop:
        body["stop_reason"] = reply.stop_reason or ""
    body |= {_WORDS.get(key, key): value for key, value in said.items() if key not in _SAID}
    return write(body, f"reply to {name}", ReplyError)


def response(
    *, tool_use_id: str, goes_on: bool, decision: str, reason: str, suppress_output: bool = False,
    system_message: str = "",
) -> dict[str, Any]:  # fmt: skip
    """A `hook_response` with all fields of the seed's sample, in its order."""
    return {
        "type": _RESPONSE, "tool_use_id": tool_use_id, "continue": goes_on, "suppress_output": suppress_output,
        "decision": decision, "system_message": system_message, "reason": reason,
    }  # fmt: skip


def _word(reply: Reply, said: Mapping[str, Any]) -> str:
    if reply.decision is Decision.ALLOW:
        return "approve"
    return "block" if said.get("decision") == "block" else ""


def _reason(reply: Reply) -> str:
    """Why it was decided so; a refusal that also stops the agent needs one, to be told from a mere refusal."""
    if reply.keep_going:
        return "\n".join(reply.keep_going_reasons)
    refused_and_stopped = reply.stop and reply.decision > Decision.ALLOW
    return reply.reason or (reply.stop_reason or "stopped" if refused_and_stopped else "")


_SAID = frozenset({"continue", "suppressOutput", "decision", "reason", "stopReason"})
_WORDS: MappingProxyType[str, str] = MappingProxyType({
    "terminalSequence": "terminal_sequence",
    "asyncTimeout": "async_timeout",
})  # fmt: skip
