"""What is known of programs, read from `rows.txt`, where the words of a row are explained.

Two views, never one. `known` is an allow-list: with an option that is not in the row nothing is claimed. What a program
is suspected of (what it wraps, opens, writes) is asked of the tags, and there an option that is not known counts for
the worst.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple


def _read_rows(text: str) -> Iterator[tuple[str, str]]:
    """Each row as it is written: its names, and its words with those of `%NAME` filled in."""
    shared: dict[str, str] = {}
    for line in re.sub(r"\n +", " ", text).splitlines():
        key, sign, row = line.partition(" => ")
        if sign and not line.startswith("#"):
            row = " ".join(shared.get(word, word) for word in row.split())
            if key.startswith("%"):
                shared[key] = row
            yield key, row


_WRITTEN = dict(_read_rows(Path(__file__).with_name("rows.txt").read_text("utf-8")))
ROWS = {key: row for key, row in _WRITTEN.items() if not key.startswith("%")}
SHARED = {key: row.split() for key, row in _WRITTEN.items() if key.startswith("%")}
_ROWS = {name: row for key, row in ROWS.items() for name in key.split()}
_TAGS: dict[str, dict[str, str]] = {}
for _name, _row in _ROWS.items():
    for _word in _row.partition(" -")[0].split():
        _tag, _, _value = _word.partition("=")
        _TAGS.setdefault(_tag, {})[_name] = _value


class Program(NamedTuple):
    """One program's options, and what its other words are."""

    options: Mapping[str, str]
    operands: Literal["files", "text", "pattern"] = "files"
    """What the words that are not options are: files, plain text, or a pattern or filter and then files."""
    most: int = 1_000  # how many operands it may have: `uniq in out` writes to its second
    no_pattern: frozenset[str] = frozenset()
    """With one of these options there is no pattern among the operands: all of them are files."""
    skip: int = 0
    assignments: bool = False
    runs: tuple[str, ...] = ()  # options by which it is told to run another program


class ParsedOptions(NamedTuple):
    """A command's words, sorted by a row."""

    options: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]
    files: tuple[str, ...]  # the operands and values that name files


def values(tag: str) -> dict[str, str]:
    """The programs with a tag, and its value."""
    return _TAGS[tag]


def lists(tag: str) -> dict[str, tuple[str, ...]]:
    """The programs with a tag, and the words of its value."""
    return {name: tuple(filter(None, value.split(","))) for name, value in _TAGS[tag].items()}


@cache
def names(tag: str) -> frozenset[str]:
    """The programs with a tag."""
    return frozenset(_TAGS[tag])


@cache
def tags_of(name: str) -> frozenset[str]:
    """The tags of a program; none if it has no row."""
    return frozenset(tag for tag, programs in _TAGS.items() if name in programs)


@cache
def program(name: str) -> Program:
    """A program's options; of one that has no row, none is known."""
    options: dict[str, str] = {}
    runs: list[str] = []
    for word in _ROWS.get(name, "").split():
        option = word.rstrip(":@?!")
        if word.endswith("!"):
            runs.append(option)
        if word.startswith("-") and word != f"{option}!":
            letters = [option] if option.startswith("--") else [f"-{letter}" for letter in option[1:]]
            options |= dict.fromkeys(letters, word[len(option) :].rstrip("!"))
    tag = {key: programs[name] for key, programs in _TAGS.items() if name in programs}
    return Program(
        options, "text" if "texts" in tag else "pattern" if "pattern" in tag else "files", int(tag.get("most", 1_000)),
        frozenset(tag.get("no-pattern", "").split(",")), int(tag.get("skip", 0)), "assignments" in tag, tuple(runs),
    )  # fmt: skip


def known(words: Sequence[str], row: Program) -> ParsedOptions | None:
    """The words after a program's name (or subcommand), sorted; None when one of them is not understood.

    Options are compared letter by letter. An abbreviation (`--out` for `--output`), a bundle with an unknown letter or
    an option that the row does not list is not understood.
    """
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
        found = options_in(word, row)
        more = found[-1][2]
        if more < 0 or at + more > len(words):
            return None
        options += [(name, value) for name, value, _ in found]
        if more:
            options[-1] = (options[-1][0], words[at + more - 1])
            at += more
    if len(operands) > row.most:
        return None
    named = [] if row.operands == "text" else operands
    if row.operands == "pattern" and not any(name in row.no_pattern for name, _ in options):
        named = operands[1:]
    values = (value for name, value in options if row.options[name] == "@")
    return ParsedOptions(tuple(options), tuple(operands), (*named, *values))


_Found = tuple[str, str, int]
"""An option, its value, and how many of the next words belong to it; -1 when it is not understood."""


def options_in(word: str, row: Program) -> list[_Found]:
    """The options in a word that begins with a dash, up to one that is not understood."""
    return list(_long(word, row) if word.startswith("--") else _short(word, row))


def _long(word: str, row: Program) -> Iterator[_Found]:
    name, sign, value = word.partition("=")
    kind = row.options.get(name)
    if kind is None or (sign and kind in ("", "::")):
        yield name, value, -1
    else:
        yield name, value, 0 if sign or kind in ("", "?") else len(kind)


def _short(word: str, row: Program) -> Iterator[_Found]:
    for at, letter in enumerate(word[1:], 2):
        kind = row.options.get(f"-{letter}")
        if kind != "":
            more = -1 if kind is None else int(kind != "?" and at == len(word))
            yield f"-{letter}", word[at:], more
            return
        yield f"-{letter}", "", 0


SHELLS = names("shell")
SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
INTERPRETERS = lists("code")  # interpreters, and the options that carry code
CODE_MODULES = frozenset(SHARED["%CODE-MODULES"])  # of `python -m`: they run code from their words
CODE_VARIABLES = re.compile("|".join(SHARED["%CODE-VARIABLES"]))


def sed_flags(script: str) -> list[str]:
    """What stands where the flags of a `s/…/…/` may stand; a bracket may shift them, so every later part counts."""
    found = re.search(r"s([^\w\s])", script)
    return re.sub(r"\\.", "", script[found.end() :]).split(found[1])[2:] if found else []
