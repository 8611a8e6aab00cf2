"""A `Reply` becomes the object that a hook would have printed. Pure.

What an event has no words for is refused with `ReplyMismatch`, never left out.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import UNSET

from hookline.core.wire.output_types import CHOICE, DECISION, REASON, WIRE_NAMES, fields_of
from hookline.errors import ReplyMismatch
from hookline.events import spec_of
from hookline.replies import Decision, EventFields, Reply, check_fits, said

_NOTHING_MORE = EventFields()


def output_object(reply: Reply, event_name: str) -> dict[str, Any]:
    """The reply as the object that goes over the wire; saying nothing is `{}`."""
    if reply.background:
        timeout = reply.background_timeout
        return {"async": True} if timeout is None else {"async": True, "asyncTimeout": timeout}
    body: dict[str, Any] = {}
    words = _words(event_name)
    specific: dict[str, Any] = {}
    if reply.decision is not Decision.PASS or reply.keep_going:
        _write_decision(reply, event_name, body, specific, words)
    if reply.stop:
        body["continue"] = False
        if reply.stop_reason is not None:
            body["stopReason"] = reply.stop_reason
    if reply.suppress_output:
        body["suppressOutput"] = True
    if reply.messages:
        body["systemMessage"] = "\n".join(reply.messages)
    _write_specific(reply, event_name, body, specific, words)
    if specific:
        body["hookSpecificOutput"] = {"hookEventName": event_name, **specific}
    return body


Words = MappingProxyType[str, str]


@cache
def _words(event_name: str) -> Words:
    """What the event calls the reply's fields."""
    return MappingProxyType({WIRE_NAMES.get(field, field): field for field in fields_of(event_name)})


def _write_decision(reply: Reply, name: str, body: dict[str, Any], specific: dict[str, Any], words: Words) -> None:
    decision = reply.decision
    spec = spec_of(name)
    if str(decision) not in spec.decisions or (reply.keep_going and not spec.keeps_going):
        _refuse(reply, name)
    if reply.keep_going:
        body["decision"] = "block"
        body["reason"] = "\n".join(reply.keep_going_reasons)
    elif spec.decides == "permission":
        specific[DECISION] = str(decision)
        if reply.reasons:
            specific[REASON] = reply.reason
    elif spec.decides == "request":
        specific[CHOICE] = _choice(reply)
    else:
        body["decision"] = "approve" if decision is Decision.ALLOW else "block"
        if reply.reasons:
            body["reason"] = reply.reason


def _choice(reply: Reply) -> dict[str, Any]:
    """PermissionRequest's own decision object."""
    more = reply.specific or _NOTHING_MORE
    if reply.decision is Decision.ALLOW:
        allowed: dict[str, Any] = {"behavior": "allow"}
        if reply.input is not None:
            allowed["updatedInput"] = reply.input
        if more.updated_permissions:
            allowed["updatedPermissions"] = list(more.updated_permissions)
        return allowed
    denied: dict[str, Any] = {"behavior": "deny"}
    if reply.reasons:
        denied["message"] = reply.reason
    return {**denied, "interrupt": True} if more.interrupt else denied


def _write_specific(reply: Reply, name: str, body: dict[str, Any], specific: dict[str, Any], words: Words) -> None:
    if CHOICE in words:
        _check_choice(reply, name)
    elif reply.input is not None:
        specific[words.get("input") or _refuse(reply, name)] = reply.input
    if reply.output is not UNSET:
        specific[words.get("output") or _refuse(reply, name)] = reply.output
    if reply.context:
        specific[words.get("context") or _refuse(reply, name)] = "\n".join(reply.context)
    more = reply.specific
    if more is None:
        return
    if more.terminal_sequence is not None:
        body["terminalSequence"] = more.terminal_sequence
    elsewhere = ("terminal_sequence", *(("updated_permissions", "interrupt") if CHOICE in words else ()))
    for field in more.__struct_fields__:
        value = getattr(more, field)
        if field in elsewhere or value == getattr(_NOTHING_MORE, field):
            continue
        specific[words.get(field) or _refuse(reply, name)] = list(value) if isinstance(value, tuple) else value


def _check_choice(reply: Reply, name: str) -> None:
    """PermissionRequest's input and permissions are part of a decision; without one there is no place for them."""
    loose = [field for field in said(reply) if field != "terminal_sequence"]
    if loose and reply.decision is Decision.PASS:
        raise ReplyMismatch(f"`{loose[0]}` goes with a decision on {name}; add `allow()` or `deny()` with `|`")


def _refuse(reply: Reply, name: str) -> str:
    """Say which part of the reply the event has no words for."""
    spec = spec_of(name)
    check_fits(reply, name, spec.decisions, spec.fields)
    unsaid = next(field for field in said(reply) if field not in _words(name))
    raise ReplyMismatch(f"`{unsaid}` cannot be said to {name} in JSON; a command hook prints it as plain text")
