"""What a tool's input holds, wherever it comes from: shell lines and paths, at any depth, under any of their names.

A tool is judged by what it is given, not by what it is called. JSON inside a text is looked into as well.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_MOST_DEPTH = 12
_LONGEST_JSON = 1_000_000

_TABLE = Path(__file__).with_name("argument_names.txt").read_text("utf-8")
_NAMES = {name: frozenset(words.split()) for name, words in re.findall(r"^(\w+) => (.*)$", _TABLE, re.MULTILINE)}
_COMMANDS, _SCRIPTS, _TALK, _PROGRAMS, _ARGUMENTS, _PATHS, _MAY_BE_OTHER = _NAMES.values()
_ENDINGS = ("path", "paths", "file", "filename", "dir", "directory", "folder")
_FILE_ADDRESS, _ADDRESS = re.compile(r"file:/", re.IGNORECASE), re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_LIKE_A_PATH = re.compile(r"^[~.]|[/\\]")
_DOCUMENTS = _TALK | {"oldstring", "newstring", "newsource"}
_SPEAKING = _COMMANDS | _SCRIPTS | _PROGRAMS | _ARGUMENTS  # arguments that say themselves what they hold


class Line(NamedTuple):
    """A shell line of an input; `certain` when its argument is one that holds nothing else."""

    text: str
    certain: bool = True


def lines_of(given: Mapping[str, Any], *, runs: bool = True) -> list[Line]:
    """The shell lines in a tool's input: a text, a list of lines, or a program with its arguments.

    `runs` says that the tool is known to run lines, so that a `script` is one, too.
    """
    return list(dict.fromkeys(_lines(given, "", 0, runs=runs)))


def _lines(value: Any, field: str, depth: int, *, runs: bool) -> Iterator[Line]:
    name = plain_name(field)
    sure = name in _COMMANDS or (runs and name in _SCRIPTS)
    if isinstance(value, str):
        inside = json_inside(value)
        if inside is not None and depth < _MOST_DEPTH:
            yield from _lines(inside, field, depth + 1, runs=runs)
        if sure or name in _SCRIPTS or (runs and name not in _TALK):
            yield Line(value, sure)
    elif isinstance(value, Mapping) and depth < _MOST_DEPTH:
        yield from _with_arguments(value, sure=sure)
        for key, item in value.items():
            speaks = not sure or isinstance(item, Mapping) or plain_name(str(key)) in _SPEAKING
            yield from _lines(item, str(key) if speaks else field, depth + 1, runs=runs)
    elif isinstance(value, (list, tuple)) and depth < _MOST_DEPTH:
        texts = [item for item in value if isinstance(item, str)]
        if texts and (sure or name in _SCRIPTS):
            yield Line(shlex.join(texts), sure)
        for item in value:
            yield from _lines(item, field, depth + 1, runs=runs)


def _with_arguments(given: Mapping[str, Any], *, sure: bool) -> Iterator[Line]:
    """A program, or the beginning of a line, with the list of arguments beside it."""
    if not any(isinstance(value, (list, tuple)) for value in given.values()):
        return
    named = {plain_name(str(key)): value for key, value in given.items()}
    rest = next((named[name] for name in _ARGUMENTS if isinstance(named.get(name), (list, tuple))), ())
    words = [item for item in rest if isinstance(item, str)]
    if not words:
        return
    for name in (*_COMMANDS, *_PROGRAMS, *(("name", "path") if sure else ())):
        program = named.get(name)
        if isinstance(program, str) and program.strip():
            yield Line(f"{program} {shlex.join(words)}")


def named_texts(
    value: Any, field: str = "", depth: int = 0, *, keys: bool = False, documents: bool = True
) -> Iterator[tuple[str, str]]:
    """Every text in an input behind the name of its argument, also inside a text that is JSON.

    With `keys` also the keys that look like paths; without `documents` not inside JSON for people or for a file.
    """
    closed = not documents and plain_name(field) in _DOCUMENTS
    inside = value if not isinstance(value, str) else None if closed else json_inside(value)
    if isinstance(value, str) and (inside is None or depth >= _MOST_DEPTH):
        yield field, value
    elif depth >= _MOST_DEPTH:
        return
    elif isinstance(inside, Mapping):
        for key, item in inside.items():
            if keys and _LIKE_A_PATH.search(str(key)):
                yield field, str(key)
            yield from named_texts(item, str(key), depth + 1, keys=keys, documents=documents)
    elif isinstance(inside, (list, tuple)):
        for item in inside:
            yield from named_texts(item, field, depth + 1, keys=keys, documents=documents)


def texts_of(given: Any, *, all_of_them: bool = False) -> Iterator[str]:
    """Every text in an input that is not one for people, or all of them."""
    return (text for field, text in named_texts(given) if all_of_them or plain_name(field) not in _TALK)


def paths_in(given: Any) -> Iterator[tuple[str, str]]:
    """The texts in a tool's input that stand where a path is expected, at any depth."""
    for field, text in named_texts(given, keys=True):
        name = plain_name(field)
        named = (name in _PATHS or name.endswith(_ENDINGS)) and text.strip() and not _ADDRESS.match(text)
        if (named and (name not in _MAY_BE_OTHER or _LIKE_A_PATH.search(text))) or _FILE_ADDRESS.match(text):
            yield field, text


def plain_name(field: str) -> str:
    """An argument's name as it is compared: small letters, nothing else."""
    if not field or (field.isascii() and field.isalpha() and field.islower()):
        return field
    return re.sub(r"[^a-z]", "", field.lower())


def json_inside(text: str) -> Any:
    """The object or list that a text is the JSON of, or nothing."""
    start = text.lstrip()[:1]
    if start not in ("{", "[") or len(text) > _LONGEST_JSON:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
