"""The wire format of Claude Code's hooks (`contract/events.json`): events and replies, both ways. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from hookline.core.wire.json_text import is_blank, parse_object, write
from hookline.core.wire.output_types import CHOICE, DECISION, FIELD_NAMES, REASON, explained, fields_of, reply_of, typed
from hookline.errors import EventError, ReplyError, ReplyMismatch
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Decision, EventFields, Reply, check_fits, said

_NAME = "hook_event_name"
_OURS = ("timestamp", "extra")
"""Fields of every event that are not on the wire; what comes under their names is the sender's own, so extra."""


def decode_event(data: bytes | str | Mapping[str, Any]) -> Event:
    """The event that a JSON object describes; fields it does not know stay readable in `event.extra`."""
    return event_from(parse_object(data))


def event_from(payload: Mapping[str, Any]) -> Event:
    """The event of an object that was parsed already."""
    name = payload.get(_NAME)
    if name.__class__ is not str:
        raise EventError(f"event: `{_NAME}` is missing; write the event's name, such as `PreToolUse`")
    cls = spec_of(name).cls
    try:
        event = msgspec.convert(payload, cls)
    except (msgspec.ValidationError, UnicodeEncodeError):  # an unknown field, or a wrong value: look which
        names, _ = _written(cls)
        extra = {key: value for key, value in payload.items() if key not in names and key != _NAME}
        fields = {key: value for key, value in payload.items() if key not in extra}
        try:
            event = msgspec.structs.replace(msgspec.convert(fields, cls), extra=extra)
        except msgspec.ValidationError as problem:
            raise EventError(f"{cls.event_name}: {explained(str(problem))}") from None
    if event.subject_field == "tool_name" and "tool_name" not in payload:
        # A tool call without a tool's name would pass every matcher by unseen.
        raise EventError(f"{name}: `tool_name` is missing; write the tool's name, such as `Bash`")
    return event


@cache
def trusted_reader(cls: type[Event]) -> Callable[[Any], Event]:
    """`decode_event`, several times as fast, for a host that knows which event comes.

    It is for bytes that a JSON writer made, such as the Claude CLI: keys given twice are not looked for.
    """
    decode = msgspec.json.Decoder(cls).decode
    of_a_tool = cls.subject_field == "tool_name"

    def read(raw: Any) -> Event:
        try:
            event = decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return decode_event(bytes(raw))  # an unknown field, or something wrong: the careful way tells which
        return decode_event(bytes(raw)) if of_a_tool and not event.tool_name else event

    return read


def event_object(event: Event) -> dict[str, Any]:
    """The event as the object that goes over the wire."""
    names, said = _written(type(event))
    body: dict[str, Any] = {}
    for name in names:
        if name == _NAME:  # where Claude Code has it: after what all events share, before the event's own
            body[_NAME] = event.event_name
            continue
        value = getattr(event, name)
        if value is not None or name in said:
            body[name] = int(value) if value.__class__ is float and value.is_integer() else value  # as JavaScript does
    for key, value in event.extra.items():
        body.setdefault(key, value)
    return body


@cache
def _written(cls: type[Event]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of an event that are on the wire, in its order, and those that are written even when they are null."""
    shared = [name for name in cls.__struct_fields__ if name in Event.__struct_fields__ and name not in _OURS]
    own = [name for name in cls.__struct_fields__ if name not in Event.__struct_fields__]
    return (*shared, _NAME, *own), spec_of(cls).nulls


def encode_event(event: Event) -> bytes:
    """The event as one line of JSON, without the newline."""
    return write(event_object(event), event.event_name, EventError)


def encoded(value: Any) -> str:
    """Any JSON value as text."""
    return write(value, "value", EventError).decode()


def event_name(event: Event | str) -> str:
    """The name of an event, given as such or by its name."""
    return event if isinstance(event, str) else event.event_name


def decode_reply(data: bytes | str | Mapping[str, Any], event: Event | str) -> Reply:
    """The reply that a hook's JSON output means on `event`; unknown keys are ignored, wrong values are not.

    No output at all is not an answer, and `"continue": true` says nothing: it is what happens anyway.
    """
    name = event_name(event)
    known = _short_reply(data, name) if data.__class__ is str and len(data) <= 500 else None
    return _reply(data, name) if known is None else known


@lru_cache(maxsize=256)
def _short_reply(text: str, name: str) -> Reply | None:
    """What a short output means, which hooks say again and again; `None` if it could be changed in place."""
    reply = _reply(text, name)
    fixed = reply.input is None and reply.output is msgspec.UNSET and reply.specific is None
    return reply if fixed else None


def _reply(data: bytes | str | Mapping[str, Any], name: str) -> Reply:
    answer = open_answer(data, name)[1]
    return reply_of(typed(answer, name), name) if answer else NOTHING


def open_answer(data: bytes | str | Mapping[str, Any], event: Event | str) -> tuple[str, dict[str, Any]]:
    """The name of the event that is answered, and the object of the answer; without output it is empty."""
    name = event_name(event)
    return name, {} if is_blank(data) else parse_object(data, f"reply to {name}", ReplyError)


def encode_reply(reply: Reply, event: Event | str) -> bytes:
    """The reply as one line of JSON, without the newline."""
    if reply is NOTHING:
        return b"{}"
    return write(reply_object(reply, event), f"reply to {event_name(event)}", ReplyError)


_NOTHING_MORE = EventFields()


def reply_object(reply: Reply, event: Event | str) -> dict[str, Any]:
    """The reply as the object a hook would have printed; what an event has no words for is refused, never left out."""
    name = event_name(event)
    if reply.background:
        timeout = reply.background_timeout
        return {"async": True} if timeout is None else {"async": True, "asyncTimeout": timeout}
    body: dict[str, Any] = {}
    specific: dict[str, Any] = {}
    if reply.decision is not Decision.PASS or reply.keep_going:
        _write_decision(reply, name, body, specific)
    if reply.stop:
        body["continue"] = False
        if reply.stop_reason is not None:
            body["stopReason"] = reply.stop_reason
    if reply.suppress_output:
        body["suppressOutput"] = True
    if reply.messages:
        body["systemMessage"] = "\n".join(reply.messages)
    _write_specific(reply, name, body, specific)
    if specific:
        body["hookSpecificOutput"] = {"hookEventName": name, **specific}
    return body


@cache
def _words(event_name: str) -> Mapping[str, str]:
    return MappingProxyType({FIELD_NAMES.get(field, field): field for field in fields_of(event_name)})


def _write_decision(reply: Reply, name: str, body: dict[str, Any], specific: dict[str, Any]) -> None:
    decision, spec = reply.decision, spec_of(name)
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
        specific[CHOICE] = choice(reply)
    else:
        body["decision"] = "approve" if decision is Decision.ALLOW else "block"
        if reply.reasons:
            body["reason"] = reply.reason


def choice(reply: Reply) -> dict[str, Any]:
    """A reply's answer to the question whether a tool may run; what does not allow it denies it."""
    more = reply.specific or _NOTHING_MORE
    made: dict[str, Any]
    if reply.decision is Decision.ALLOW:
        permissions = list(more.updated_permissions) or None
        made = {"behavior": "allow", "updatedInput": reply.input, "updatedPermissions": permissions}
    else:
        message = reply.reason if reply.reasons else None
        made = {"behavior": "deny", "message": message, "interrupt": more.interrupt or None}
    return {word: value for word, value in made.items() if value is not None}


def _write_specific(reply: Reply, name: str, body: dict[str, Any], specific: dict[str, Any]) -> None:
    words, more = _words(name), reply.specific or _NOTHING_MORE
    if more.terminal_sequence is not None:
        body["terminalSequence"] = more.terminal_sequence
    fields = [field for field in said(reply) if field not in ("terminal_sequence", "keep_going")]
    if CHOICE in words:  # PermissionRequest's input and permissions are part of a decision: else they have no place
        if fields and reply.decision is Decision.PASS:
            raise ReplyMismatch(f"`{fields[0]}` goes with a decision on {name}; add `allow()` or `deny()` with `|`")
        fields = [field for field in fields if field not in ("input", "updated_permissions", "interrupt")]
    for field in fields:
        value = getattr(more if hasattr(more, field) else reply, field)
        value = "\n".join(value) if field == "context" else list(value) if isinstance(value, tuple) else value
        specific[words.get(field) or _refuse(reply, name)] = value


def _refuse(reply: Reply, name: str) -> str:
    """Say which part of the reply the event has no words for."""
    spec = spec_of(name)
    check_fits(reply, name, spec.decisions, spec.fields)
    unsaid = next(field for field in said(reply) if field not in _words(name))
    raise ReplyMismatch(f"`{unsaid}` cannot be said to {name} in JSON; a command hook prints it as plain text")
