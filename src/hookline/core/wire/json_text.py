"""JSON as bytes or text into plain objects and back, with errors that say where. Pure.

What is refused: text that is not JSON, not an object, too large, nested too deep, not UTF-8, with lone surrogates, or
with a key given twice (two readers could disagree on what was meant).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from types import NoneType
from typing import Any, TypeVar

import msgspec

from hookline.errors import EventError, HooklineError

MOST_BYTES = 32 * 1024 * 1024
DEEPEST = 200
_TOO_DEEP = f"nested too deep; at most {DEEPEST} levels are read"
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?', re.DOTALL)
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES = re.compile(rb"\\[^u]|(?P<pair>" + _HIGH + _LOW + rb")|(?P<lone>" + _HIGH + rb"|" + _LOW + rb")", re.DOTALL)
_BYTE = re.compile(r" ?\(byte (\d+)\)")

Error = type[HooklineError]
T = TypeVar("T")


def parse_object(
    data: bytes | str | Mapping[str, Any], what: str = "event", error: Error = EventError
) -> dict[str, Any]:
    """The JSON object in `data`; anything else raises `error` with the place and what to do."""
    if data.__class__ is dict:
        return data
    if isinstance(data, Mapping):
        return dict(data)
    if not isinstance(data, (bytes, str)):
        raise error(f"{what}: expected JSON or a mapping, got `{type(data).__name__}`")
    try:
        raw = data if isinstance(data, bytes) else data.encode()
    except UnicodeEncodeError as problem:
        raise error(f"{what}: a lone surrogate at character {problem.start}; send valid Unicode") from None
    if len(raw) > MOST_BYTES:
        raise error(f"{what}: {len(raw):,} bytes is more than {MOST_BYTES:,}; send the large part as a file path")
    value = _decoded(raw, what, error)
    if value.__class__ is not dict:
        kinds = {list: "an array", str: "a string", bool: "a boolean", NoneType: "null"}
        raise error(f"{what}: expected a JSON object, got {kinds.get(type(value), 'a number')}; write `{{…}}`")
    keys = _keys(value, what, error)
    if keys != raw.count(b":") and keys != sum(1 for found in _STRINGS.finditer(raw) if found.group(1)):
        raise error(f"{what}: key {_duplicate(raw)} is given twice; keep one")
    return value


def read_object(data: bytes | str) -> dict[str, Any] | None:
    """The JSON object in `data`, or `None` if it holds anything else."""
    return read_as(data, dict)


def read_as(data: bytes | str, kind: type[T]) -> T | None:
    """The JSON in `data` as a value of this type, or `None` if it holds anything else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def is_blank(data: bytes | str | Mapping[str, Any]) -> bool:
    """Whether nothing was said at all: no output, only white space, or `{}`."""
    return not data or (isinstance(data, (bytes, str)) and not data.strip())


def write(value: Any, what: str, error: Error) -> bytes:
    """The value as one line of JSON; what JSON cannot say raises `error`."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        problem = "it has a lone surrogate; use valid Unicode"
    except RecursionError:
        problem = "it is nested too deep, or contains itself"
    except (TypeError, ValueError, OverflowError) as raised:
        text = str(raised)
        problem = f"{text[:1].lower()}{text[1:]}; use strings, numbers, lists and dicts"
    raise error(f"{what}: cannot be written as JSON: {problem}")


def write_lossy(value: Any) -> bytes:
    """The value as one line of JSON, for what must be kept or told: half characters become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def check_says(value: Any, what: str, error: Error) -> None:
    """Raise `error` unless a reader of the JSON gets this very value: no bytes, no NaN, no keys but texts."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise error(f"{what}: a key is `{key!r}`; JSON has only texts as keys")
            check_says(item, what, error)
    elif isinstance(value, (list, tuple)):
        for item in value:
            check_says(item, what, error)
    elif not isinstance(value, (str, int, float, NoneType)):
        raise error(f"{what}: `{type(value).__name__}` is not a value of JSON; use strings, numbers, lists and dicts")
    elif isinstance(value, float) and not math.isfinite(value):
        raise error(f"{what}: `{value}` is not a number of JSON")


def _decoded(raw: bytes, what: str, error: Error) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as problem:
        why = _unreadable(raw, str(problem))
    except UnicodeDecodeError:
        why = _not_utf8(raw)
    except RecursionError:
        why = _TOO_DEEP
    raise error(f"{what}: {why}")


def _not_utf8(raw: bytes) -> str:
    try:
        raw.decode()
    except UnicodeDecodeError as problem:
        return f"invalid UTF-8 at {_position(raw, problem.start)}; send UTF-8"
    return "invalid UTF-8; send UTF-8"  # pragma: no cover - msgspec and Python agree on what UTF-8 is


def _unreadable(raw: bytes, problem: str) -> str:
    """What is wrong with text that is not JSON, with line and column where they are known."""
    if not raw.strip():
        return "there is nothing to read; write a JSON object"
    if raw.startswith(b"\xef\xbb\xbf"):
        return "it begins with a byte order mark; send UTF-8 without one"
    for escape in _ESCAPES.finditer(raw):
        if escape.group("lone"):
            return f"a lone surrogate at {_position(raw, escape.start())}; send valid Unicode"
    found = _BYTE.search(problem)
    if found is None:
        return f"not JSON: {_plainly(problem)}"
    text = _plainly(problem[: found.start()])
    offset = int(found.group(1)) - (text == "trailing characters")  # there msgspec points one past the first
    return f"not JSON: {text} at {_position(raw, offset)}"


def _plainly(problem: str) -> str:
    text = problem.removeprefix("JSON is malformed: ").partition(" - at ")[0]
    return {"Input data was truncated": "it ends too early"}.get(text, f"{text[:1].lower()}{text[1:]}")


def _position(raw: bytes, offset: int) -> str:
    line, last_break = raw.count(b"\n", 0, offset) + 1, raw.rfind(b"\n", 0, offset)
    return f"line {line}, column {offset - last_break}"


def _keys(value: Any, what: str, error: Error) -> int:
    """How many keys there are in all, while making sure that it is not too deep to be handled."""
    count, level = 0, [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if item.__class__ is dict:
                count += len(item)
                item = item.values()  # noqa: PLW2901 - a list's items or a dict's values, alike from here on
            for child in item:
                if child.__class__ is dict or child.__class__ is list:
                    below.append(child)  # noqa: PERF401 - the hottest loop here: a comprehension per item is slower
        if not below:
            return count
        level = below
    raise error(f"{what}: {_TOO_DEEP}")


def _duplicate(raw: bytes) -> str:
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        found.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)

    json.loads(raw, object_pairs_hook=note)
    return f"`{found[0]}`"


def valid_text(text: str) -> str:
    """Half characters, which models send and tools print, are shown by their numbers."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
