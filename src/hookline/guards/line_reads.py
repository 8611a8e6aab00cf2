"""Which files a shell line may read, as far as its text tells.

A program that is called in a way that its row knows reads the files that the row says. Of any other call every word
that may be a path counts, since a program that is not known may read whatever it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.languages import LANGUAGES
from hookline.core.shell.programs.table import names, values
from hookline.core.shell.programs.writers import HARMLESS
from hookline.core.shell.targets import CHANGES_FOLDER, join, placed
from hookline.guards.permissions.readonly_commands import find_files, match_options, row_of

_OPENS_NONE = frozenset({"printf", "export", "sleep", "exit", "return", "kill", "set", "unset", "wait"})
_TEXT_ONLY = names("harmless") | CHANGES_FOLDER | _OPENS_NONE
"""Programs that open none of their words; a wildcard among them still shows which files there are."""
_SCRIPT_FIRST = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "git grep"), ("-e", "--regexp")),
    **dict.fromkeys(("sed", "gsed", "perl", "ruby"), ("-e", "--expression")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), ("-F", "-v", "--field-separator", "--assign")),
    **dict.fromkeys(("jq", "yq"), ("--arg", "--argjson")),
}
"""Programs whose first operand is a pattern or a script, and their options that are followed by a text."""
_SCRIPT_OPTIONS = frozenset({"-e", "-f", "--regexp", "--file", "--expression", "--from-file"})
_SCRIPTED = frozenset(name for name, look in values("look").items() if look == "sed" or look in LANGUAGES)
"""Programs with a language of their own, in which a script can name a file: `r /etc/passwd`, `getline < "x"`."""
_MENTION = re.compile(r"(?:/|~/|\.\./)[^\s\"'();,<>]+")
_ADDRESS = re.compile(r"(?!file:)[A-Za-z][\w+.-]*://")


class FileRead(NamedTuple):
    """A file that a line may read, seen from where the line starts."""

    path: str
    certain: bool
    """Whether the word can be nothing but a path."""


class LineReads(NamedTuple):
    """What a line reads, the paths that its scripts mention (which may be anything else), and why there may be more."""

    files: tuple[FileRead, ...]
    mentioned: tuple[str, ...]
    undecidable: tuple[str, ...]


@lru_cache(maxsize=2048)
def reads_of(text: str) -> LineReads:
    """The files that a shell line may read; an earlier `cd` in the line is already applied."""
    line = parse_line(text)
    found: dict[FileRead, None] = {}
    mentioned: dict[str, None] = {}
    unsure: dict[str, None] = dict.fromkeys((*line.undecidable, *line.code))
    for part, bases in placed(line):
        if part.name in _SCRIPTED:
            paths = (path for word in part.words[1:] for path in _MENTION.findall(word))
            mentioned.update((join(base, path), None) for path in paths for base in bases or [""])
        for word, certain in _words(part):
            if word is None:
                unsure[f"`{part.text[:60]}` may read a file that is known only when it runs"] = None
            elif not bases and not word.startswith(("/", "~")):
                unsure[f"where `{word[:60]}` lies depends on an earlier `cd`"] = None
            elif not HARMLESS.fullmatch(word):
                found.update(dict.fromkeys(FileRead(join(base, word), certain) for base in bases or [""]))
    return LineReads(tuple(found), tuple(mentioned), tuple(unsure))


def _words(part: SimpleCommand) -> Iterator[tuple[str | None, bool]]:
    """The words of a command that may be files; None for one that is known only when the line runs."""
    for redirect in part.redirects:
        if redirect.op in ("<", "<>"):
            yield (redirect.target if redirect.known else None), True
    if not part.words:
        return
    if part.name in _TEXT_ONLY:
        yield from ((part.words[index], True) for index in part.globs if part.name not in CHANGES_FOLDER)
        return
    yield ".", True
    filled = any(via.startswith("find ") for via in part.via)
    if any(not (filled and "{}" in part.words[index]) for index in part.unknown if index):
        yield None, False
    words = [word for index, word in enumerate(part.words) if index and index not in part.unknown]
    known = _known(part.name, words)
    yield from ((word, True) for word in known) if known is not None else _suspected(part.name, words)


def _known(name: str, words: list[str]) -> list[str] | None:
    """The files of a call that is understood as a whole."""
    if name == "find":
        return find_files(words)
    row, words = row_of(name, words)
    taken = None if row is None else match_options(name, words, row)
    return None if taken is None else [word for word in taken.files if word not in ("", "-")]


def _suspected(name: str, words: list[str]) -> Iterator[tuple[str, bool]]:
    """Every word, and every part of a word, that may be a path."""
    texts = _SCRIPT_FIRST.get(name)
    scripted = texts is not None and not any(word[:2] in _SCRIPT_OPTIONS or word in _SCRIPT_OPTIONS for word in words)
    before = ""
    for word in words:
        if word.startswith("-") and word != "-":
            yield from _attached(word)
        elif texts and before in texts:
            pass
        elif scripted:
            scripted = False
        elif not _ADDRESS.match(word):
            yield word.removeprefix("file://"), word.startswith(("/", "~", "./", "../")) and not re.search(r"\s", word)
            yield from _attached(word)
        before = word


def _attached(word: str) -> Iterator[tuple[str, bool]]:
    """What may be a path inside a word: `--file=x`, `if=x`, `@x`, `-fx`, `host:x`."""
    for sign in "=@":
        if sign in word:
            yield word.partition(sign)[2].removeprefix("@"), True
    if ":" in word and "://" not in word:
        yield from ((piece, False) for piece in word.split(":")[1:] if piece.startswith(("/", "~", "..")))
    if re.match(r"-[^-](?:/.|~|\.\./)", word):
        yield word[2:], True
