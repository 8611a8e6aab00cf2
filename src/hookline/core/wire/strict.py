"""What a hook that fails closed may answer: output that could be meant as an answer has to be readable as one. Pure.

A command's JSON may hold keys that mean nothing here, and its text may be a log, as in Claude Code. A hook whose
failure denies is read with more care: a decision in a form that is not understood is a failure, not "no objection".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec

from hookline.core.wire import message, snake
from hookline.core.wire.output_types import Allowed, Denied, Output, fields_of
from hookline.errors import ReplyError, did_you_mean
from hookline.events import spec_of

_BODY = "hookSpecificOutput"
_OUTPUT = (*Output.__struct_encode_fields__, _BODY)
_KEYS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType({
    "claude": _OUTPUT,
    "spec": _OUTPUT,
    "snake": snake.FIELDS,
    "message": (*message.FIELDS, _BODY),
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
)
"""The words that nothing but an answer has."""
_DECISION = re.compile(
    r"^\W*(?:allow|approve|ask|block|defer|deny|forbid|refuse|reject)(?:e?d|den|s)?\b", re.MULTILINE | re.IGNORECASE
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


def check_async(said: Mapping[str, Any], event_name: str) -> None:
    """Raise `ReplyError` if an answer goes to the background and says something: that would not count."""
    more = next((key for key in said if key not in _ALONE), None)
    if said.get("async") is True and more is not None:
        raise ReplyError(
            f"reply to {event_name}: `async` lets everything go on, so `{more}` would not count; leave one of them out"
        )


def _check_keys(said: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in said:
        if key not in known:
            raise ReplyError(f"{where}: unknown key `{key}`{did_you_mean(key, known) or _listed(known)}")


@cache
def _listed(known: tuple[str, ...]) -> str:
    return f"; write one of {', '.join(f'`{name}`' for name in known)}"


def _is_json(text: str) -> bool:
    """Whether the text is a JSON value; a number alone is a count, not an answer."""
    try:
        return not isinstance(msgspec.json.decode(text), int | float) or text in ("true", "false")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
