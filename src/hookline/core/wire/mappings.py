"""A dict that a Python hook answers with: the wire's words, in the spellings people use, and nothing else. Pure.

A command's JSON may say more than anybody understands, as in Claude Code. A Python hook that answers `{"decison":
"block"}` meant something, so a key that nobody knows is refused, with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from hookline.core.wire import snake
from hookline.core.wire.decode import reply_of
from hookline.core.wire.output_types import Allowed, Denied, Output, fields_of, typed
from hookline.core.wire.strict import check_async
from hookline.errors import ReplyError, did_you_mean
from hookline.replies import NOTHING, Reply, allow

_BODY, _NAME = "hookSpecificOutput", "hookEventName"
_SNAKE_SIGN = "continue_execution"
_BLOCK = 'to block, write `{"decision": "block", "reason": "…"}` or return `deny("…")`'
_MEANT = frozenset({
    "ok", "allow", "allowed", "approve", "approved", "block", "blocked", "deny", "denied", "permission", "behavior",
    "action", "result", "error",
})  # fmt: skip
"""What people write who want to allow or block."""

Spellings = Mapping[str, str]
"""Every accepted spelling of a key, and the wire's own."""


def decode_mapping(answer: Mapping[str, Any], event_name: str) -> Reply:
    """The reply that a mapping means on an event; one with a key that nobody understands is a `ReplyError`."""
    if not answer:
        return NOTHING
    if _SNAKE_SIGN in answer:
        _to_wire_keys(answer, _same(tuple(snake.FIELDS)), f"reply to {event_name}")
        return snake.decode_reply(answer, event_name)
    said = _to_wire_keys(answer, _top(event_name), f"reply to {event_name}")
    check_async(said, event_name)
    body = _body(said, event_name)
    if body is not None:
        said[_BODY] = body
    output = typed(said, event_name)
    reply = reply_of(output, event_name)
    approved = output.decision == "approve" and event_name == "PermissionRequest" and not reply.background
    return reply | allow() if approved else reply  # a command's is not heard (FACTS.md §3), a Python hook means it


def _body(said: dict[str, Any], event_name: str) -> Any:
    """The event's own part: as it is nested, or gathered from the top level, where people write it, too."""
    lifted = {field: said.pop(field) for field in fields_of(event_name) if field in said and field not in _OUTPUT}
    body = said.get(_BODY)
    if isinstance(body, Mapping):
        where = f"reply to {event_name}: `{_BODY}`"
        body = _to_wire_keys(body, _same((_NAME, *fields_of(event_name))), where)
        if isinstance(body.get("decision"), Mapping):
            body["decision"] = _to_wire_keys(body["decision"], _CHOICE, f"{where}: `decision`")
        both = next((field for field in lifted if field in body), None)
        if both is not None:
            raise ReplyError(f"{where}: `{both}` is given twice; keep one")
        return {**body, **lifted}
    return {_NAME: event_name, **lifted} if lifted and body is None else body


def _to_wire_keys(given: Mapping[Any, Any], spellings: Spellings, where: str) -> dict[str, Any]:
    """The mapping under the wire's own keys."""
    out: dict[str, Any] = {}
    for key, value in given.items():
        name = spellings.get(key) if isinstance(key, str) else None
        if name is None:
            raise ReplyError(f"{where}: nobody understands `{key}`{_advice(str(key), spellings)}")
        if name in out:
            raise ReplyError(f"{where}: `{name}` is given twice; keep one")
        out[name] = value
    return out


def _advice(key: str, spellings: Spellings) -> str:
    names = tuple(dict.fromkeys(spellings.values()))
    if key.lower() in _MEANT and "decision" in names:
        return f"; {_BLOCK}"
    return did_you_mean(key, names) or f"; write one of {', '.join(f'`{name}`' for name in names)}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _same(names: tuple[str, ...]) -> Spellings:
    return {**{_snake(name): name for name in names}, **{name: name for name in names}}


_OUTPUT = tuple(Output.__struct_encode_fields__)
_CHOICE = _same(("behavior", *Allowed.__struct_encode_fields__, *Denied.__struct_encode_fields__))


@cache
def _top(event_name: str) -> Spellings:
    """What may stand at the top: every event's fields, this event's own, and the official SDK's spellings."""
    names = (*_OUTPUT, _BODY, *fields_of(event_name))
    return MappingProxyType({**_same(names), "continue_": "continue", "async_": "async"})
