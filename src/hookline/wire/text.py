"""JSON as bytes or text into plain objects, with errors that say where. Pure.

What is refused: text that is not JSON, not an object, too large, nested too deep, not UTF-8, with lone surrogates, or
with a key given twice (two readers could disagree on what was meant).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.errors import EventError, HooklineError

MOST_BYTES = 32 * 1024 * 1024
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)
_DEEPEST = 200


def parse_object(
    data: bytes | str | Mapping[str, Any], what: str = "event", error: type[HooklineError] = EventError
) -> dict[str, Any]:
    """The JSON object in `data`; anything else raises `error` with the place and what to do."""
    if isinstance(data, Mapping):
        return dict(data)
    raw = _encoded(data, what, error)
    if len(raw) > MOST_BYTES:
        raise error(f"{what}: {len(raw):,} bytes is more than {MOST_BYTES:,}; send the large part as a file path")
    value = _decoded(raw, what, error)
    if not isinstance(value, dict):
        raise error(f"{what}: expected a JSON object, got {_kind(value)}; write `{{…}}`")
    if _keys(value, what, error, 0) != sum(1 for found in _STRINGS.finditer(raw) if found.group(1)):
        raise error(f"{what}: {_duplicate(raw)} is given twice; keep one")
    return value


def _encoded(data: bytes | str, what: str, error: type[HooklineError]) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return data.encode()
    except UnicodeEncodeError as problem:
        raise error(f"{what}: a lone surrogate at character {problem.start}; send valid Unicode") from None


def _decoded(raw: bytes, what: str, error: type[HooklineError]) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as problem:
        raise error(f"{what}: not JSON: {_located(raw, str(problem))}") from None
    except UnicodeDecodeError as problem:
        raise error(f"{what}: invalid UTF-8 at byte {problem.start}; send UTF-8") from None
    except RecursionError:
        raise error(f"{what}: nested too deep; at most {_DEEPEST} levels are read") from None


def _located(raw: bytes, problem: str) -> str:
    """msgspec's complaint, with line and column where it gives a byte."""
    found = re.search(r"\(byte (\d+)\)", problem)
    if not found:
        return problem
    before = raw[: int(found.group(1))]
    line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
    return f"{problem[: found.start()].strip()} at line {line}, column {column}"


def _keys(value: Any, what: str, error: type[HooklineError], depth: int) -> int:
    """How many keys there are in all, while making sure that it is not too deep to be handled."""
    if depth > _DEEPEST:
        raise error(f"{what}: nested too deep; at most {_DEEPEST} levels are read")
    if isinstance(value, dict):
        return len(value) + sum(_keys(item, what, error, depth + 1) for item in value.values())
    if isinstance(value, list):
        return sum(_keys(item, what, error, depth + 1) for item in value)
    return 0


def _duplicate(raw: bytes) -> str:
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                found.append(key)
            seen.add(key)

    json.loads(raw, object_pairs_hook=note)
    return f"key `{found[0]}`" if found else "a key"


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
