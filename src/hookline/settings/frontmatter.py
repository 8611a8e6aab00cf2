"""The header of skill and agent markdown files: `---`, YAML, `---`, then the text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from hookline.errors import MissingExtra
from hookline.settings.files import plain, read_text
from hookline.settings.problems import Problem, shown

_HEADER = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^---[ \t]*(?:\r?\n|\Z))(.*)\Z", re.DOTALL | re.MULTILINE)
_MOST_CHARACTERS = 256 * 1024


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
    try:
        import yaml
    except ImportError:
        raise MissingExtra(f"reading the header of {label}", "yaml") from None
    try:
        value = plain(yaml.load(text, Loader=_loader(yaml)))  # noqa: S506 - a safe loader that refuses aliases
    except yaml.YAMLError as error:
        return {}, (Problem(label, f"its header is not YAML: {_located(error)}"),)
    except (ValueError, RecursionError) as error:
        return {}, (Problem(label, f"its header cannot be read: {str(error).lower() or 'it is nested too deeply'}"),)
    if value is None:
        return {}, ()
    if not isinstance(value, dict):
        return {}, (Problem(label, f"its header must be `key: value` lines, got {shown(value)}"),)
    return value, ()


def _loader(yaml: Any) -> Any:
    """The safe loader, with dates left as text and without aliases, so that a small header stays small."""

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                mark = self.peek_event().start_mark
                raise yaml.YAMLError(f"line {mark.line + 2}: `*` begins an alias, which is not understood; quote it")
            return super().compose_node(parent, index)

    Plain.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Plain


def _located(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)
    return f"line {mark.line + 2} column {mark.column + 1}: {error.problem or error.context}"
