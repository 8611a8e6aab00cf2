"""`{"event": "pre_tool_use", …}` in, `{"continue_execution": …}` out: names in snake case throughout. Pure.

Here a hook lets something happen or blocks it; it cannot ask, so a question is answered with a
block. No output, and `"continue_execution": true`, is no objection: it grants nothing that the agent's own rules do
not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from hookline.core.wire import claude
from hookline.core.wire.decode import tell_model
from hookline.core.wire.json_text import is_blank, parse_object, write
from hookline.core.wire.output_types import explained
from hookline.errors import EventError, ReplyError, ReplyMismatch, UnknownEvent
from hookline.events import CATALOG, Event, spec_of
from hookline.replies import NOTHING, Decision, Reply, said

__all__ = ["NAMES", "decode_event", "decode_reply", "encode_event", "encode_reply"]

NAMES: MappingProxyType[str, str] = MappingProxyType(
    {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): name for name in CATALOG}
)
"""Every event by its name in this dialect: `pre_tool_use` is `PreToolUse`."""

_SNAKE = {name: snake for snake, name in NAMES.items()}

# -- events ------------------------------------------------------------------------------------------------------


def decode_event(data: bytes | str | Mapping[str, Any]) -> Event:
    """The event that a JSON object describes; fields it does not know stay readable in `event.extra`."""
    payload = dict(parse_object(data))
    snake = payload.pop("event", None)
    if not isinstance(snake, str):
        raise EventError("event: `event` is missing; write the event's name, such as `pre_tool_use`")
    if snake not in NAMES:
        raise UnknownEvent(snake, tuple(NAMES))
    name = NAMES[snake]
    theirs = spec_of(name).snake
    moment = _moment(payload.pop("timestamp", None), snake)
    plain = {theirs.get(key, key): value for key, value in payload.items()}
    event = claude.event_from({**plain, "hook_event_name": name})
    return event if moment is None else msgspec.structs.replace(event, timestamp=moment)


def _moment(said: Any, snake: str) -> datetime | None:
    if said is None:
        return None
    try:
        return msgspec.convert(said, datetime)
    except msgspec.ValidationError:
        raise EventError(
            f"{snake}: `timestamp`: expected a time such as `2026-01-31T09:30:00Z`, got `{said}`"
        ) from None


def encode_event(event: Event) -> bytes:
    """The event as one line of JSON, without the newline."""
    name = event.event_name
    theirs = {plain: snake for snake, plain in spec_of(name).snake.items()}
    body = {theirs.get(key, key): value for key, value in claude.event_object(event).items()}
    del body["hook_event_name"]
    head = {"event": _SNAKE[name], "timestamp": event.timestamp}
    return write({**head, **{key: value for key, value in body.items() if key not in head}}, name, EventError)


# -- replies -----------------------------------------------------------------------------------------------------


class _Output(msgspec.Struct):
    """Everything an answer may say; here `null` says nothing."""

    continue_execution: bool | None = None
    stop_reason: str | None = None
    suppress_logging: bool | None = None
    system_message: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None


FIELDS = _Output.__struct_fields__
"""Every word that an answer may use."""


def decode_reply(data: bytes | str | Mapping[str, Any], event: Event | str) -> Reply:
    """The reply that a hook's output means on `event`: a block denies where that is possible, else stops the agent."""
    if is_blank(data):
        return NOTHING
    name = claude.event_name(event)
    payload = parse_object(data, f"reply to {name}", ReplyError)
    try:
        output = msgspec.convert(payload, _Output)
    except (msgspec.ValidationError, UnicodeEncodeError) as problem:  # the latter: a key with half a surrogate pair
        raise ReplyError(f"reply to {name}: {explained(str(problem))}") from None
    reply = Reply(
        input=output.updated_input,
        context=_some(output.additional_context),
        messages=_some(output.system_message),
        suppress_output=bool(output.suppress_logging),
    )
    reply = tell_model(reply, name)
    if output.continue_execution is False:
        reply |= _blocked(output.stop_reason, name)
    return NOTHING if reply == NOTHING else reply


def _some(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()


def _blocked(reason: str | None, name: str) -> Reply:
    if spec_of(name).gate:
        return Reply(decision=Decision.DENY, reasons=_some(reason))
    return Reply(stop=True, stop_reason=reason or None)


def encode_reply(reply: Reply, event: Event | str) -> bytes:
    """The reply as one line of JSON, without the newline; what this dialect has no word for is refused."""
    name = claude.event_name(event)
    for field in said(reply):
        if field not in _SAYABLE:
            raise ReplyMismatch(f"`{field}` cannot be said in the `snake` dialect; it has words for {_listed()}")
    if reply.background:
        raise ReplyMismatch(f"`background` cannot be said in the `snake` dialect; it has words for {_listed()}")
    body: dict[str, Any] = {"continue_execution": True}
    if reply.stop or reply.decision > Decision.ALLOW:
        body = {"continue_execution": False, "stop_reason": _reason(reply)}
    if reply.suppress_output:
        body["suppress_logging"] = True
    if reply.messages:
        body["system_message"] = "\n".join(reply.messages)
    if reply.input is not None:
        body["updated_input"] = reply.input
    if reply.context:
        body["additional_context"] = "\n".join(reply.context)
    return write(body, f"reply to {name}", ReplyError)


_SAYABLE = ("input", "context")


def _listed() -> str:
    return ", ".join(f"`{field}`" for field in _Output.__struct_fields__)


_UNASKED: Mapping[Decision, str] = {
    Decision.ASK: "a person has to be asked, and there is no one to ask here",
    Decision.DEFER: "it was left to the run that resumes the session",
}


def _reason(reply: Reply) -> str | None:
    """Why it is blocked; a question that cannot be asked says so."""
    return reply.reason or reply.stop_reason or _UNASKED.get(reply.decision)
