"""The header of skill and agent markdown files: `---`, YAML, `---`, then the text.

People write headers by hand, and Claude Code reads them leniently: `description: Use this: when asked` and
`argument-hint: [file] [line]` are no YAML, and mean what they say. So a header that is not YAML is read key by key, and
a value that is not YAML is text. What cannot be read even so is a problem; readers take it as the strictest it can be.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from hookline.errors import extra
from hookline.settings.files import Problem, plain, read_text, shown

_HEADER = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^---[ \t]*(?:\r?\n|\Z))(.*)\Z", re.DOTALL | re.MULTILINE)
_MOST_CHARACTERS = 256 * 1024
_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:\s|$)")
_KEYED = re.compile(r"(\s*(?:- +)*[\w-]+[ \t]*: +)(\S.*)")


class Markdown(msgspec.Struct, frozen=True):
    """A markdown file: its header's fields, its text, and what is wrong with it."""

    header: dict[str, Any]
    body: str
    problems: tuple[Problem, ...] = ()


def read_markdown(path: str | Path, label: str = "") -> Markdown:
    """Read a markdown file with or without a header; whatever is wrong is a problem, and the text is kept.

    Only a header needs the `yaml` extra; without it `MissingExtra` is raised.
    """
    text, problems = read_text(str(path), label or str(path))
    return Markdown({}, "", problems) if text is None else parse_markdown(text, label or str(path))


def parse_markdown(text: str, label: str) -> Markdown:
    """A markdown text with or without a header."""
    found = _HEADER.match(text)
    if found is None:
        unclosed = re.match(r"---[ \t]*\r?\n", text)
        problem = Problem(label, "its header has no end; write `---` on a line of its own after it")
        return Markdown({}, text, (problem,) if unclosed else ())
    header, problems = _parse_yaml(found[1], label)
    return Markdown(header, found[2], problems)


def _parse_yaml(text: str, label: str) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    if len(text) > _MOST_CHARACTERS:
        return {}, (Problem(label, f"its header is longer than {_MOST_CHARACTERS // 1024} KiB; nothing of it is read"),)
    with extra(f"reading the header of {label}", "yaml"):
        import yaml
    try:
        value = plain(yaml.load(text, Loader=_loader(yaml)))  # noqa: S506 - a safe loader that refuses aliases
    except yaml.YAMLError as error:
        return _leniently(text, label, yaml, error)
    except (ValueError, RecursionError) as error:
        return {}, (Problem(label, f"its header cannot be read: {str(error).lower() or 'it is nested too deeply'}"),)
    if value is None:
        return {}, ()
    if not isinstance(value, dict):
        return {}, (Problem(label, f"its header must be `key: value` lines, got {shown(value)}"),)
    return value, ()


def _leniently(text: str, label: str, yaml: Any, error: Any) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """A header that is not YAML, key by key; nothing of it if it does not even have keys."""
    parts = _parts(text)
    if not parts:
        return {}, (Problem(label, f"its header is not YAML: {_located(error)}"),)
    header: dict[str, Any] = {}
    problems: list[Problem] = []
    for number, key, lines in parts:
        for attempt in (lines, [_quoted(line, yaml) for line in lines]):  # YAML, or with what is none in quotes
            read = _read("\n".join(attempt), yaml)
            if isinstance(read, dict) and list(read) == [key]:
                header[key] = read[key]
                break
        else:
            problems.append(Problem(label, f"line {number}: `{key}` of its header is not YAML and cannot be read"))
    if not problems:
        why = f"its header is not YAML ({_located(error)}) and is read as it seems to be meant; quote the value"
        problems.append(Problem(label, why, "warning"))
    return header, tuple(problems)


def _parts(text: str) -> list[tuple[int, str, list[str]]]:
    """Each key at the margin with its number in the file and its lines; none if the text begins with something else."""
    parts: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 2):
        found = _KEY.match(line)
        if found:
            parts.append((number, found[1], [line]))
        elif parts:
            parts[-1][2].append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            return []
    return parts


def _read(text: str, yaml: Any) -> Any:
    """The value of a text; an empty object if it is not YAML."""
    try:
        return plain(yaml.load(text, Loader=_loader(yaml)))
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}


def _quoted(line: str, yaml: Any) -> str:
    """A line whose value is not YAML, or an object, with the value in quotes."""
    found = _KEYED.match(line)
    if found is None or not isinstance(_read(found[2], yaml), dict):
        return line
    return found[1] + msgspec.json.encode(found[2].strip()).decode()


def _loader(yaml: Any) -> Any:
    """The safe loader, with dates left as text and without aliases, so that a small header stays small."""

    class PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                mark = self.peek_event().start_mark
                raise yaml.YAMLError(f"line {mark.line + 2}: `*` begins an alias, which is not understood; quote it")
            return super().compose_node(parent, index)

    PlainLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return PlainLoader


def _located(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)
    return f"line {mark.line + 2} column {mark.column + 1}: {error.problem or error.context}"
