"""Every dialect by its name, and which one a line is written in. Pure.

- `claude` is Claude Code's own format (`claude.py`).
- `spec` is the same with two differences: an explicit `"continue": true` on Stop keeps the agent going, and a
  `systemMessage` is for the model.
- `message` has lines of type `hook_event` and `hook_response`, as an agent and its host exchange them. An event is
  claude's object with `"type": "hook_event"`. A response names the tool call it answers and says, always, `continue`,
  `suppress_output`, `decision`, `system_message` and `reason`; empty strings say nothing, and a block without a
  `reason` takes its `stop_reason`. What these words cannot say (a rewritten input, say) rides along as claude's own
  `hookSpecificOutput`.
- `snake` is `{"event": "pre_tool_use", …}` in, `{"continue_execution": …}` out: names in snake case throughout. A hook
  lets something happen or blocks it; it cannot ask, so a question is answered with a block. No output, and
  `"continue_execution": true`, is no objection: it grants nothing that the agent's own rules do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from hookline.core.wire import claude
from hookline.core.wire.json_text import parse_object, write
from hookline.core.wire.output_types import Output, Seconds, explained, reply_of, tell_model, typed
from hookline.errors import EventError, HooklineError, ReplyError, ReplyMismatch, UnknownEvent, did_you_mean
from hookline.events import CATALOG, Event, spec_of
from hookline.replies import NOTHING, Decision, Reply, allow, said, texts

Data = bytes | str | Mapping[str, Any]


class Dialect(NamedTuple):
    """Turns bytes into events and replies and back; what is written is one line, without the newline."""

    decode_event: Callable[[Data], Event]
    encode_event: Callable[[Event], bytes]
    decode_reply: Callable[[Data, Event | str], Reply]
    encode_reply: Callable[[Reply, Event | str], bytes]


def _agent_stops(event_name: str) -> bool:
    """Where the agent itself, not a teammate, is about to stop."""
    spec = spec_of(event_name)
    return spec.keeps_going and hasattr(spec.cls, "stop_hook_active")


def _decode_spec_reply(data: Data, event: Event | str) -> Reply:
    name, answer = claude.open_answer(data, event)
    if not answer:
        return NOTHING
    output = typed(answer, name)
    reply = reply_of(output, name)
    if output.continue_ is True and _agent_stops(name) and not reply.background:
        reply = msgspec.structs.replace(reply, keep_going=True, keep_going_reasons=texts(output.reason))
    return tell_model(reply, name)


def _encode_spec_reply(reply: Reply, event: Event | str) -> bytes:
    name = claude.event_name(event)
    body = claude.reply_object(reply, name)
    if reply.keep_going and not reply.stop and _agent_stops(name):
        body["continue"] = True
    return write(body, f"reply to {name}", ReplyError)


_EVENT = "hook_event"


def _decode_message_event(data: Data) -> Event:
    payload = parse_object(data)
    if payload.get("type") != _EVENT:
        raise EventError(f"event: `type`: expected `{_EVENT}`, got `{payload.get('type')}`")
    return claude.event_from({key: value for key, value in payload.items() if key != "type"})


def _encode_message_event(event: Event) -> bytes:
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


MESSAGE_FIELDS = (*_Response.__struct_encode_fields__, "tool_use_id")  # every word that an answer may use


def _decode_message_reply(data: Data, event: Event | str) -> Reply:
    name, answer = claude.open_answer(data, event)
    if not answer:
        return NOTHING
    output = typed(answer, name, _Response)
    approved = output.decision == "approve"
    if output.decision == "":
        output.decision = UNSET
    elif output.decision == "block":
        _read_block(output)
    reply = reply_of(output, name)
    return reply | allow() if approved and name == "PermissionRequest" else reply


def _read_block(output: Any) -> None:
    """A block refuses this one thing, also with `continue: false`; with both reasons it stops the agent, too."""
    stops = output.reason and output.stop_reason is not UNSET
    if not output.reason:
        output.reason = output.stop_reason
    if output.continue_ is False and not stops:
        output.continue_ = UNSET
    if getattr(output.hook_specific_output, "permissionDecision", None) in ("ask", "defer"):  # a milder refusal
        output.decision = UNSET


def _encode_message_reply(reply: Reply, event: Event | str) -> bytes:
    """What is not let through on a gate is blocked with `continue: false`: a host may know no more words than these."""
    name = claude.event_name(event)
    body = claude.reply_object(reply, name)
    refused = spec_of(name).gate and reply.decision > Decision.ALLOW
    no = "block" if refused or body.get("decision") == "block" else ""
    words = message_response(
        tool_use_id=(event.tool_use_id or "") if isinstance(event, Event) else "",
        goes_on=not (reply.stop or refused),
        suppress_output=reply.suppress_output,
        decision="approve" if reply.decision is Decision.ALLOW else no,
        system_message=body.pop("systemMessage", ""),
        reason=_message_reason(reply),
    )
    if reply.stop:
        words["stop_reason"] = reply.stop_reason or ""
    words |= {_MESSAGE_NAMES.get(key, key): value for key, value in body.items() if key not in _IN_MESSAGE}
    return write(words, f"reply to {name}", ReplyError)


def _message_reason(reply: Reply) -> str:
    """Why it was decided so; a refusal that also stops the agent needs one, to be told from a mere refusal."""
    if reply.keep_going:
        return "\n".join(reply.keep_going_reasons)
    needed = reply.stop and reply.decision > Decision.ALLOW
    return reply.reason or ((reply.stop_reason or "stopped") if needed else "")


_IN_MESSAGE = frozenset({"continue", "suppressOutput", "decision", "reason", "stopReason"})
_MESSAGE_NAMES = {"terminalSequence": "terminal_sequence", "asyncTimeout": "async_timeout"}


def message_response(
    *, tool_use_id: str, goes_on: bool, decision: str, reason: str, suppress_output: bool = False,
    system_message: str = "",
) -> dict[str, Any]:  # fmt: skip
    """A `hook_response` with all fields of the seed's sample, in its order."""
    return {
        "type": "hook_response", "tool_use_id": tool_use_id, "continue": goes_on, "suppress_output": suppress_output,
        "decision": decision, "system_message": system_message, "reason": reason,
    }  # fmt: skip


SNAKE_NAMES = MappingProxyType({re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): name for name in CATALOG})
"""Every event by its name in this dialect: `pre_tool_use` is `PreToolUse`."""
_SNAKE = {name: snake for snake, name in SNAKE_NAMES.items()}


def _decode_snake_event(data: Data) -> Event:
    payload = dict(parse_object(data))
    snake = payload.pop("event", None)
    if not isinstance(snake, str):
        raise EventError("event: `event` is missing; write the event's name, such as `pre_tool_use`")
    if snake not in SNAKE_NAMES:
        raise UnknownEvent(snake, tuple(SNAKE_NAMES))
    name = SNAKE_NAMES[snake]
    theirs, moment = spec_of(name).snake, payload.pop("timestamp", None)
    try:
        moment = msgspec.convert(moment, datetime | None)
    except msgspec.ValidationError:
        expected = "expected a time such as `2026-01-31T09:30:00Z`"
        raise EventError(f"{snake}: `timestamp`: {expected}, got `{moment}`") from None
    plain = {theirs.get(key, key): value for key, value in payload.items()}
    event = claude.event_from({**plain, "hook_event_name": name})
    return event if moment is None else msgspec.structs.replace(event, timestamp=moment)


def _encode_snake_event(event: Event) -> bytes:
    name = event.event_name
    theirs = {plain: snake for snake, plain in spec_of(name).snake.items()}
    body = {theirs.get(key, key): value for key, value in claude.event_object(event).items()}
    del body["hook_event_name"]
    head = {"event": _SNAKE[name], "timestamp": event.timestamp}
    return write({**head, **{key: value for key, value in body.items() if key not in head}}, name, EventError)


class _SnakeOutput(msgspec.Struct):
    """Everything an answer may say; here `null` says nothing."""

    continue_execution: bool | None = None
    stop_reason: str | None = None
    suppress_logging: bool | None = None
    system_message: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None


SNAKE_FIELDS = _SnakeOutput.__struct_fields__  # every word that an answer may use


def _decode_snake_reply(data: Data, event: Event | str) -> Reply:
    """A block denies where that is possible, else it stops the agent."""
    name, answer = claude.open_answer(data, event)
    try:
        output = msgspec.convert(answer, _SnakeOutput)
    except (msgspec.ValidationError, UnicodeEncodeError) as problem:  # the latter: a key with half a surrogate pair
        raise ReplyError(f"reply to {name}: {explained(str(problem))}") from None
    reply = Reply(
        input=output.updated_input,
        context=texts(output.additional_context),
        messages=texts(output.system_message),
        suppress_output=bool(output.suppress_logging),
    )
    reply, reason = tell_model(reply, name), output.stop_reason
    if output.continue_execution is False and spec_of(name).gate:
        reply |= Reply(decision=Decision.DENY, reasons=texts(reason))
    elif output.continue_execution is False:
        reply |= Reply(stop=True, stop_reason=reason or None)
    return NOTHING if reply == NOTHING else reply


def _encode_snake_reply(reply: Reply, event: Event | str) -> bytes:
    """What this dialect has no word for is refused."""
    for field in (*said(reply), *(("background",) if reply.background else ())):
        if field not in ("input", "context"):
            known = ", ".join(f"`{word}`" for word in SNAKE_FIELDS)
            raise ReplyMismatch(f"`{field}` cannot be said in the `snake` dialect; it has words for {known}")
    body: dict[str, Any] = {"continue_execution": True}
    if reply.stop or reply.decision > Decision.ALLOW:
        reason = reply.reason or reply.stop_reason or _UNASKED.get(reply.decision)
        body = {"continue_execution": False, "stop_reason": reason}
    if reply.suppress_output:
        body["suppress_logging"] = True
    if reply.messages:
        body["system_message"] = "\n".join(reply.messages)
    if reply.input is not None:
        body["updated_input"] = reply.input
    if reply.context:
        body["additional_context"] = "\n".join(reply.context)
    return write(body, f"reply to {claude.event_name(event)}", ReplyError)


_UNASKED: Mapping[Decision, str] = {
    Decision.ASK: "a person has to be asked, and there is no one to ask here",
    Decision.DEFER: "it was left to the run that resumes the session",
}


DIALECTS: Mapping[str, Dialect] = MappingProxyType({
    "claude": Dialect(claude.decode_event, claude.encode_event, claude.decode_reply, claude.encode_reply),
    "spec": Dialect(claude.decode_event, claude.encode_event, _decode_spec_reply, _encode_spec_reply),
    "snake": Dialect(_decode_snake_event, _encode_snake_event, _decode_snake_reply, _encode_snake_reply),
    "message": Dialect(_decode_message_event, _encode_message_event, _decode_message_reply, _encode_message_reply),
})  # fmt: skip


def dialect(name: str) -> Dialect:
    """The dialect of that name."""
    if name not in DIALECTS:
        known = ", ".join(f"`{one}`" for one in DIALECTS)
        raise HooklineError(f"unknown dialect `{name}`{did_you_mean(name, DIALECTS) or f'; write one of {known}'}")
    return DIALECTS[name]


def detect(payload: Mapping[str, Any]) -> str:
    """The name of the dialect that an event was written in; `spec` events are claude's, so they are called that."""
    if payload.get("type") == _EVENT:
        return "message"
    for name, sign in (("claude", "hook_event_name"), ("snake", "event")):
        if sign in payload:
            return name
    raise EventError("event: no dialect has such events; write `hook_event_name` (claude) or `event` (snake)")
