"""Our own keys in a TOML file of another program: set, added and removed; the rest stays to the letter. Pure.

There is more than one way to write a table, so an edit is a guess that is checked: the text is parsed again, and unless
nothing but our key is different, the next way is tried. A text for which none is left is refused. The last line of a
text ends (`keep_form` of `apply` sees to it).
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from hookline.errors import HooklineError

Path = tuple[str, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)
_KEY = re.compile(r"""\s*((?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'#])+)=\s*""")
_BLANK = re.compile(r"(?:\A|(?<=\n))\r?\n\Z")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class _Statement(NamedTuple):
    """A key with its value or the head of a table: where it lies, with its line's end, and what it names."""

    kind: Literal["value", "table", "array"]
    path: Path
    start: int
    value: int  # where the value begins
    code: int  # where a comment or the line's end begins
    end: int


class _Float(NamedTuple):
    """A number with a point, as it is written; `nan` would not equal itself."""

    written: str


def checked(text: str) -> dict[str, Any]:
    """The values of a TOML text; what cannot be read is an error that names the line."""
    try:
        return tomllib.loads(text, parse_float=_Float)
    except tomllib.TOMLDecodeError as error:
        raise HooklineError(str(error)) from None
    except RecursionError:
        raise HooklineError("its values are nested too deep") from None


def lookup(value: Any, path: Path) -> Any:
    """What a path of keys leads to; `None` if it leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def set_value(text: str, path: Path, value: Any) -> str:
    """The text with a value at a path of keys."""
    before = checked(text)
    if lookup(before, path) == value:
        return text
    blocked = any(not isinstance(lookup(before, path[:end]), dict | None) for end in range(1, len(path)))
    wanted = _changed(before, path, value)
    return _first_that_is(wanted, path, iter(()) if blocked else _ways_to_set(text, wanted, path, value))


def remove_value(text: str, path: Path) -> str:
    """The text without the value at a path of keys, and without the table that it was alone in."""
    before = checked(text)
    if lookup(before, path) is None:
        return text
    wanted = _changed(before, path)
    return _first_that_is(wanted, path, _ways_to_remove(text, wanted, path))


def add_row(text: str, name: str, row: Mapping[str, Any]) -> str:
    """The text with one more table in an array of tables."""
    rows = checked(text).get(name, [])
    if not isinstance(rows, list):
        raise HooklineError(f"`{name}` is not an array; write `[[{name}]]` tables instead, then install again")
    made = _append(text, f"[[{_dotted((name,))}]]\n" + "".join(f"{key} = {literal(row[key])}\n" for key in row))
    try:
        checked(made)
    except HooklineError:
        raise HooklineError(f"`{name}` is written as an inline array; write `[[{name}]]` tables instead") from None
    return made


def remove_rows(text: str, name: str, unwanted: Callable[[Mapping[str, Any]], bool]) -> str:
    """The text without the unwanted tables of an array of tables."""
    rows = checked(text).get(name, [])
    if not isinstance(rows, list):
        return text
    drop = [isinstance(row, dict) and unwanted(row) for row in rows]
    heads = [one for one in _statements(text) if one.kind == "array" and one.path == (name,)]
    for head, gone in reversed(list(zip(heads, drop, strict=False))):
        text = _cut(text, head.start, _end_of_table(text, head)) if gone else text
    if checked(text).get(name, []) != [row for row, gone in zip(rows, drop, strict=True) if not gone]:
        raise HooklineError(f"`{name}` is written as an inline array; take our entries out of it by hand")
    return text


def _first_that_is(wanted: dict[str, Any], path: Path, ways: Iterator[str]) -> str:
    """The first text that has these values and no others; tables without anything in them do not count."""
    for made in ways:
        try:
            if _pruned(checked(made), path) == _pruned(wanted, path):
                return made
        except HooklineError:
            continue
    raise HooklineError(f"`{_dotted(path)}` cannot be edited here; write it as a table of its own")


def _ways_to_set(text: str, wanted: dict[str, Any], path: Path, value: Any) -> Iterator[str]:
    found = list(_statements(text))
    for one in found:
        if one.kind == "value" and one.path == path[: len(one.path)]:
            yield text[: one.value] + literal(lookup(wanted, one.path)) + text[one.code :]
    heads = [one for one in found if one.kind != "value"]
    tables = [one for one in heads if one.kind == "table" and one.path == path[: len(one.path)]]
    top = max((one.end for one in found if not heads or one.start < heads[0].start), default=0)
    places = [*((one.path, _end_of_table(text, one)) for one in tables), ((), top)]
    places.sort(key=lambda place: -len(place[0]))
    lines = [(table, end, f"{_dotted(path[len(table) :])} = {literal(value)}\n") for table, end in places]
    yield from (text[:end] + line + text[end:] for table, end, line in lines if table == path[:-1])
    yield _append(text, f"[{_dotted(path[:-1])}]\n{_dotted(path[-1:])} = {literal(value)}\n")
    yield from (text[:end] + line + text[end:] for _, end, line in lines)


def _ways_to_remove(text: str, wanted: dict[str, Any], path: Path) -> Iterator[str]:
    head: _Statement | None = None
    for one in _statements(text):
        if one.kind != "value":
            head = one
        elif one.path == path[: len(one.path)]:
            if one.path != path:
                yield text[: one.value] + literal(lookup(wanted, one.path)) + text[one.code :]
            if head and head.path == path[:-1] and _end_of_table(text, head) == one.end and head.end == one.start:
                yield _cut(text, head.start, one.end)
            yield text[: one.start] + text[one.end :]


def _append(text: str, table: str) -> str:
    """A table at the end, behind a blank line."""
    return f"{text}\n{table}" if text else table


def _cut(text: str, start: int, end: int) -> str:
    """Without a table and the blank line before it: what `_append` has done, undone."""
    blank = _BLANK.search(text[:start])
    return text[: blank.start() if blank else start] + text[end:]


def _statements(text: str) -> Iterator[_Statement]:
    """Every statement of a text that can be read, in its order."""
    table: Path = ()
    for start, code, end in _logical_lines(text):
        line = text[start:code]
        words = line.strip()
        if words.startswith("["):
            table = _named(words)
            yield _Statement("array" if words.startswith("[[") else "table", table, start, start, code, end)
        elif words and (key := _KEY.match(line)):
            yield _Statement("value", table + _named(f"{key[1]} = 0"), start, start + key.end(), code, end)


def _logical_lines(text: str) -> Iterator[tuple[int, int, int]]:
    """Where each line begins, where its comment or its end begins, and where it ends; a value may span several."""
    start = code = depth = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == "\n" and depth == 0:
            yield start, code, token.end()
            start = code = token.end()
        elif word.strip() and not word.startswith("#"):
            depth += word in ("[", "{")
            depth -= word in ("]", "}")
            code = token.end() - (len(word) - len(word.rstrip()))


def _named(statement: str) -> Path:
    """The keys that a head of a table, or a key with a number as its value, names."""
    value: Any = tomllib.loads(statement)
    path: list[str] = []
    while isinstance(value, dict) and value:
        ((name, value),) = value.items()
        path.append(name)
    return tuple(path)


def _end_of_table(text: str, head: _Statement) -> int:
    """Behind the last value that stands under a head; comments that follow are the next one's."""
    end = head.end
    for one in _statements(text):
        if one.start > head.start:
            if one.kind != "value":
                break
            end = one.end
    return end


def _changed(values: dict[str, Any], path: Path, value: Any = None) -> dict[str, Any]:
    """The values with another one at a path; without it, if there is none."""
    name, *rest = path
    if rest:
        inner = values.get(name)
        return {**values, name: _changed(inner if isinstance(inner, dict) else {}, tuple(rest), value)}
    if value is None:
        return {key: inner for key, inner in values.items() if key != name}
    return {**values, name: value}


def _pruned(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """Without the tables along a path that have nothing in them."""
    inner = values.get(path[0]) if path else None
    if not isinstance(inner, dict):
        return values
    inner = _pruned(inner, path[1:])
    return {**values, path[0]: inner} if inner else {name: values[name] for name in values if name != path[0]}


def _dotted(path: Path) -> str:
    return ".".join(name if _BARE.fullmatch(name) else literal(name) for name in path)


def literal(value: Any) -> str:
    """A value as TOML writes it; texts are JSON's, which TOML's basic strings include."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_dotted((name,))} = {literal(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return value.written if isinstance(value, _Float) else str(value)
