"""The options of programs that read: which ones are known, which take a value, and which values are files.

Options are compared letter by letter. An abbreviation (`--out` for `--output`), a bundle with an unknown letter or an
option that a row does not list is not understood, and then nothing is claimed about the command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Operands = Literal["files", "text", "pattern"]
"""What the words that are not options are: files, plain text, or a pattern or filter and then files."""
Value = Literal["", ":", "@", "?", "::"]
"""What follows an option: nothing, a text, a file, perhaps an attached text, or two texts."""


class ReadOnlyOptions(NamedTuple):
    """One program's options that only read."""

    options: Mapping[str, Value]
    operands: Operands = "files"
    most: int = 1_000
    """How many operands it may have: `uniq in out` writes to its second."""
    no_pattern: frozenset[str] = frozenset()
    """With one of these options there is no pattern among the operands: all of them are files."""


class ParsedOptions(NamedTuple):
    """A command's words, sorted by a row."""

    options: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]
    files: tuple[str, ...]
    """The operands and values that name files."""


def row(spec: str, operands: Operands = "files", *, most: int = 1_000, no_pattern: str = "") -> ReadOnlyOptions:
    """A row from its short form: `-ab` are flags, `-n:` takes a text, `-f@` a file, `-M?` perhaps an attached text."""
    options: dict[str, Value] = {}
    for word in spec.split():
        name = word.rstrip(":@?")
        options |= dict.fromkeys(_names(name), _VALUES[word[len(name) :]])
    return ReadOnlyOptions(options, operands, most, frozenset(no_pattern.split()))


_VALUES: dict[str, Value] = {"": "", ":": ":", "@": "@", "?": "?", "::": "::"}


def _names(name: str) -> list[str]:
    return [name] if name.startswith("--") else [f"-{letter}" for letter in name[1:]]


def take(words: Sequence[str], row: ReadOnlyOptions) -> ParsedOptions | None:
    """The words after a program's name (or subcommand), sorted; None when one of them is not understood."""
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            operands += words[at:]
            break
        if word == "-" or not word.startswith("-"):
            operands.append(word)
            continue
        found = _long(word, row) if word.startswith("--") else _short(word, row)
        if found is None or at + found.more > len(words):
            return None
        options += found.options
        if found.more:
            options[-1] = (options[-1][0], words[at + found.more - 1])
            at += found.more
    return _sorted(options, operands, row)


class _Found(NamedTuple):
    options: list[tuple[str, str]]
    more: int = 0
    """How many words after this one belong to the last option."""


def _long(word: str, row: ReadOnlyOptions) -> _Found | None:
    name, sign, value = word.partition("=")
    kind = row.options.get(name)
    if kind is None or (sign and kind in ("", "::")):
        return None
    return _Found([(name, value)], 0 if sign or kind in ("", "?") else len(kind) if kind == "::" else 1)


def _short(word: str, row: ReadOnlyOptions) -> _Found | None:
    options: list[tuple[str, str]] = []
    for at, letter in enumerate(word[1:], 2):
        kind = row.options.get(f"-{letter}")
        if kind is None:
            return None
        options.append((f"-{letter}", "" if kind == "" else word[at:]))
        if kind != "":
            return _Found(options, int(kind != "?" and at == len(word)))
    return _Found(options)


def _sorted(options: list[tuple[str, str]], operands: list[str], row: ReadOnlyOptions) -> ParsedOptions | None:
    if len(operands) > row.most:
        return None
    values = [value for name, value in options if row.options[name] == "@"]
    named = operands
    if row.operands == "text":
        named = []
    elif row.operands == "pattern" and not any(name in row.no_pattern for name, _ in options):
        named = operands[1:]
    return ParsedOptions(tuple(options), tuple(operands), (*named, *values))
