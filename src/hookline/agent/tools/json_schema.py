"""Whether a JSON value fits a JSON Schema: the keywords that people describe answers with, every misfit told at once.

Keywords that are not in the table (`format`, `title`, …) say nothing about whether a value fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: TYPES["number"](value) and value == int(value),
}
DEEPEST = 64


def misfits(value: Any, schema: Any) -> list[str]:
    """Why a value does not fit, each with where: `/words/0 must be string`."""
    return list(_misfits(value, schema, "", schema, 0))


def _misfits(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if schema is True or depth > DEEPEST:
        return
    if not isinstance(schema, Mapping):
        yield f"{where or '/'} is not allowed here"
        return
    if isinstance(schema.get("$ref"), str):
        yield from _misfits(value, _referred(schema["$ref"], root), where, root, depth + 1)
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(kinds, list) and not any(TYPES[kind](value) for kind in kinds if kind in TYPES):
        yield f"{where or '/'} must be {' or '.join(str(kind) for kind in kinds)}"
        return
    for keyword, check in KEYWORDS.items():
        if keyword in schema:
            yield from check(value, schema, where, root, depth)


def _referred(reference: str, root: Any) -> Any:
    """What a `$ref` inside the document points at; one that points nowhere fits nothing."""
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name, False) if isinstance(found, Mapping) else False
    return found if reference.startswith("#") else False


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _properties(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in schema["properties"].items():
            if name in value:
                yield from _misfits(value[name], inner, f"{where}/{name}", root, depth + 1)


def _required(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{where or '/'} must have `{name}`" for name in schema["required"] if name not in value)


def _additional(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    patterns = list(schema.get("patternProperties") or ())
    for name in value:
        if name in (schema.get("properties") or ()) or any(re.search(pattern, name) for pattern in patterns):
            continue
        if schema["additionalProperties"] is False:
            yield f"{where or '/'} must not have `{name}`"
        else:
            yield from _misfits(value[name], schema["additionalProperties"], f"{where}/{name}", root, depth + 1)


def _items(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        first = len(schema.get("prefixItems") or ())
        for at, item in enumerate(value[first:], first):
            yield from _misfits(item, schema["items"], f"{where}/{at}", root, depth + 1)


def _any_of(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if not any(_fits(value, one, root, depth) for one in schema["anyOf"]):
        yield f"{where or '/'} fits none of the schemas it may have"


def _one_of(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    fitting = sum(_fits(value, one, root, depth) for one in schema["oneOf"])
    if fitting != 1:
        yield f"{where or '/'} must fit one of the schemas it may have, and fits {fitting}"


def _all_of(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    for one in schema["allOf"]:
        yield from _misfits(value, one, where, root, depth + 1)


def _not(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if _fits(value, schema["not"], root, depth):
        yield f"{where or '/'} has the form that is ruled out"


def _fits(value: Any, schema: Any, root: Any, depth: int) -> bool:
    return next(_misfits(value, schema, "", root, depth + 1), None) is None


def _enum(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if not any(_same(value, one) for one in schema["enum"]):
        yield f"{where or '/'} must be one of {', '.join(repr(one) for one in schema['enum'])}"


def _const(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
    if not _same(value, schema["const"]):
        yield f"{where or '/'} must be {schema['const']!r}"


def _bound(keyword: str, kind: Callable[[Any], bool], fits: Callable[[Any, Any], bool], says: str) -> Any:
    def check(value: Any, schema: Any, where: str, root: Any, depth: int) -> Iterator[str]:
        if kind(value) and not fits(value, schema[keyword]):
            yield f"{where or '/'} must {says} {schema[keyword]}"

    return check


_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", "number", lambda value, bound: value >= bound, "be at least"),
    ("maximum", "number", lambda value, bound: value <= bound, "be at most"),
    ("exclusiveMinimum", "number", lambda value, bound: value > bound, "be more than"),
    ("exclusiveMaximum", "number", lambda value, bound: value < bound, "be less than"),
    ("minLength", "string", lambda value, bound: len(value) >= bound, "have a length of at least"),
    ("maxLength", "string", lambda value, bound: len(value) <= bound, "have a length of at most"),
    ("pattern", "string", lambda value, bound: re.search(bound, value) is not None, "match"),
    ("minItems", "array", lambda value, bound: len(value) >= bound, "have a length of at least"),
    ("maxItems", "array", lambda value, bound: len(value) <= bound, "have a length of at most"),
    ("minProperties", "object", lambda value, bound: len(value) >= bound, "have a length of at least"),
    ("maxProperties", "object", lambda value, bound: len(value) <= bound, "have a length of at most"),
)
KEYWORDS: dict[str, Callable[..., Iterator[str]]] = {
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
    **{keyword: _bound(keyword, TYPES[kind], fits, says) for keyword, kind, fits, says in _BOUNDS},
}
"""What is checked, by keyword."""
