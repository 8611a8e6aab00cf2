"""Answers of which everything has to be understood: of Python hooks, and of hooks whose failure denies. Pure.

A command's JSON may hold keys that mean nothing here, and its text may be a log, as in Claude Code. A hook whose
failure denies is read with more care: a decision in a form that is not understood is a failure, not "no objection". A
Python hook that answers `{"decison": "block"}` meant something, too: an unknown key is refused, with what to write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from hookline.core.wire.dialects import DIALECTS, MESSAGE_FIELDS, SNAKE_FIELDS
from hookline.core.wire.json_text import read_object
from hookline.core.wire.output_types import Allowed, Denied, Output, fields_of, reply_of, typed
from hookline.errors import ReplyError, did_you_mean
from hookline.events import spec_of
from hookline.replies import NOTHING, Reply, allow

_BODY = "hookSpecificOutput"
_OUTPUT = (*Output.__struct_encode_fields__, _BODY)
_KEYS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType({
    "claude": _OUTPUT, "spec": _OUTPUT, "snake": SNAKE_FIELDS, "message": (*MESSAGE_FIELDS, _BODY),
})  # fmt: skip
"""Dialect → the keys of an answer."""

ANSWERING = frozenset(key for keys in _KEYS.values() for key in keys) - {"type", "tool_use_id"}
"""The words of an answer, in any dialect: an object with none of them, such as a line of a log, is not one."""

_CHOICE = ("behavior", *Allowed.__struct_encode_fields__, *Denied.__struct_encode_fields__)
_ALONE = frozenset({"async", "asyncTimeout", "async_timeout", "type", "tool_use_id"})
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
_ANSWER = re.compile(
    r"""hookSpecificOutput|permissionDecision|continue_execution|\bdecision["']?\s*[:=]|["']continue["']\s*:""",
    re.IGNORECASE,
)  # the words that nothing but an answer has
_DECISION = re.compile(
    r"""^\W*(?:(?:action|behaviou?r|permission|verdict)\W+)?
    (?:(?:allow|approve|ask|block|defer|den[iy]|forbid|refuse|reject)(?:e?d|den|e?s)?|continue\W+(?:false|no))\b""",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)


def check_text(text: str, event_name: str) -> None:
    """Raise `ReplyError` if text that is not an answer looks as if it were meant as one.

    Where text is told to the model, it may hold anything but the words of an answer.
    """
    shown = _TERMINAL.sub("", text).strip()
    says_nothing = not spec_of(event_name).stdout
    if _ANSWER.search(shown) or (says_nothing and ("{" in shown or _is_json(shown))):
        problem = "has an answer in it that does not stand alone as JSON"
    elif says_nothing and _BINARY.search(shown):
        problem = "has bytes that are not text"
    elif says_nothing and _DECISION.search(shown):
        problem = "names a decision, but is not JSON"
    else:
        return
    raise ReplyError(
        f"reply to {event_name}: the output {problem}; print one JSON object and nothing else, or exit with code 2"
    )


def check_object(said: Mapping[str, Any], event_name: str, dialect: str = "claude") -> None:
    """Raise `ReplyError` if an answer has a key that means nothing here, or one that would not count."""
    where = f"reply to {event_name}"
    _check_keys(said, _KEYS[dialect], where)
    check_async(said, event_name)
    body = said.get(_BODY)
    if isinstance(body, Mapping):
        _check_keys(body, ("hookEventName", *fields_of(event_name)), f"{where}: `{_BODY}`")
        if isinstance(body.get("decision"), Mapping):
            _check_keys(body["decision"], _CHOICE, f"{where}: `{_BODY}.decision`")


def check_json(text: str, event_name: str, dialect: str = "claude") -> None:
    """The same for an answer that is still text; the short ones, which hooks say again and again, are checked once."""
    (_check_json if len(text) <= 500 else _check_json.__wrapped__)(text, event_name, dialect)


@lru_cache(maxsize=256)
def _check_json(text: str, event_name: str, dialect: str) -> None:
    check_object(read_object(text) or {}, event_name, dialect)


def check_async(said: Mapping[str, Any], event_name: str) -> None:
    """Raise `ReplyError` if an answer goes to the background and says something: that would not count."""
    more = next((key for key in said if key not in _ALONE), None)
    if said.get("async") is True and more is not None:
        raise ReplyError(
            f"reply to {event_name}: `async` lets everything go on, so `{more}` would not count; leave one of them out"
        )


def _check_keys(said: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    _to_wire_keys(said, dict(zip(known, known, strict=True)), where, _BLOCK)


def _is_json(text: str) -> bool:
    """Whether the text is a JSON value; a number alone is a count, not an answer."""
    try:
        return not isinstance(msgspec.json.decode(text), int | float) or text in ("true", "false")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


_NAME = "hookEventName"
_SNAKE_SIGN = "continue_execution"
_BLOCK = 'to block, write `{"decision": "block", "reason": "…"}`'
_MEANT = frozenset({
    "ok", "allow", "allowed", "approve", "approved", "block", "blocked", "deny", "denied", "permission", "behavior",
    "action", "result", "error",
})  # fmt: skip
"""What people write who want to allow or block."""

Spellings = Mapping[str, str]  # every accepted spelling of a key, and the wire's own


def decode_mapping(answer: Mapping[str, Any], event_name: str) -> Reply:
    """The reply that a mapping means on an event; one with an unknown key is a `ReplyError`."""
    if not answer:
        return NOTHING
    if _SNAKE_SIGN in answer:
        _to_wire_keys(answer, _same(SNAKE_FIELDS), f"reply to {event_name}")
        return DIALECTS["snake"].decode_reply(answer, event_name)
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
            body["decision"] = _to_wire_keys(body["decision"], _same(_CHOICE), f"{where}: `decision`")
        both = next((field for field in lifted if field in body), None)
        if both is not None:
            raise ReplyError(f"{where}: `{both}` is given twice; keep one")
        return {**body, **lifted}
    return {_NAME: event_name, **lifted} if lifted and body is None else body


def _to_wire_keys(
    given: Mapping[Any, Any], spellings: Spellings, where: str, block: str = f'{_BLOCK} or return `deny("…")`'
) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in given.items():
        name = spellings.get(key) if isinstance(key, str) else None
        if name is None:
            raise ReplyError(f"{where}: `{key}` is not known{_advice(str(key), spellings, block)}")
        if name in out:
            raise ReplyError(f"{where}: `{name}` is given twice; keep one")
        out[name] = value
    return out


def _advice(key: str, spellings: Spellings, block: str) -> str:
    names = tuple(dict.fromkeys(spellings.values()))
    if key.lower() in _MEANT and "decision" in names:
        return f"; {block}"
    return did_you_mean(key, names) or f"; write one of {', '.join(f'`{name}`' for name in names)}"


def _same(names: tuple[str, ...]) -> Spellings:
    snake = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): name for name in names}
    return snake | dict(zip(names, names, strict=True))


@cache
def _top(event_name: str) -> Spellings:
    """What may stand at the top: every event's fields, this event's own, and the official SDK's spellings."""
    names = (*_OUTPUT, *fields_of(event_name))
    return MappingProxyType({**_same(names), "continue_": "continue", "async_": "async"})
