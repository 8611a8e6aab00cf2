"""Command patterns such as `rm -rf *`, held against one simple command: its flags in any order and any spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

import msgspec

from hookline.errors import HookError
from hookline.hooks.condition import Catch, Rule, parse_rule, part_caught
from hookline.shell import SimpleCommand, parse_line

_LONG_FLAGS = {
    "rm": {"--recursive": "r", "--force": "f", "--dir": "d"},
    "chmod": {"--recursive": "R"},
    "chown": {"--recursive": "R"},
    "chgrp": {"--recursive": "R"},
    "cp": {"--recursive": "r", "--force": "f"},
    "mv": {"--force": "f"},
    "ln": {"--force": "f", "--symbolic": "s"},
    "docker": {"--force": "f"},
    "podman": {"--force": "f"},
    "git": {"--force": "f", "--force-with-lease": "f", "--force-if-includes": "f", "--delete": "d", "--mirror": "f"},
    "curl": {"--output": "o", "--insecure": "k"},
}
"""What long options are in short; an abbreviation such as `--recurs` counts as everything it may stand for."""
_SAME_LETTER = {"rm": {"R": "r"}, "cp": {"R": "r", "a": "r"}}
_GNU = {
    name: f"g{name}" for name in ("rm", "dd", "cp", "mv", "ln", "chmod", "chown", "chgrp", "rmdir", "shred", "kill")
}
_MOST_LETTERS = 4
_STAR = "*"


class Pattern(msgspec.Struct, frozen=True):
    """One pattern, ready to be held against commands."""

    text: str
    rule: Rule
    name: str
    flags: frozenset[str]
    operands: tuple[str, ...]
    mention: re.Pattern[str]
    needle: str
    """What any command that is meant must contain, in small letters."""

    def names(self, name: str) -> bool:
        """Whether a program of this name is meant: `rm`, `rm.exe`, and GNU's `grm` where it has that name."""
        name = name.removesuffix(".exe")
        return name == self.name or name == _GNU.get(self.name) or (_STAR in self.name and fnmatchcase(name, self.name))


class Operand(NamedTuple):
    """A word that is no flag; right behind an option it may be that option's value."""

    text: str
    known: bool
    value: bool


class Sorted(NamedTuple):
    """A command's words: its flags as a set, and the other words in order."""

    flags: frozenset[str]
    operands: list[Operand]
    open: bool
    """Whether a word that is known only later may still be a flag."""


def pattern_of(text: str) -> Pattern:
    """Read one pattern; what is no single command is refused."""
    if not text.strip():
        raise HookError("a command pattern is empty; write one such as `rm -rf *`")
    parsed = parse_line(text.replace(_STAR, "x"))
    if sum(not part.via for part in parsed.commands) != 1 or not parsed.commands[0].words:
        raise HookError(f"`{text}` is no single command; write one pattern per command, such as `rm -rf *`")
    words = text.removesuffix(":*").split() + [_STAR] * text.endswith(":*")
    flags, operands, _ = sort_words(words[0], words[1:], written=True)
    mentioned = r"\s+".join(re.escape(word) for word in text.partition(_STAR)[0].split())
    mention = re.compile(rf"(?<![\w-]){mentioned}(?![\w-])" if mentioned else "(?!)")
    return Pattern(
        text=text,
        rule=parse_rule(f"Bash({text.strip()})"),
        name=words[0],
        flags=flags,
        operands=tuple(each.text for each in operands),
        mention=mention,
        needle=words[0].partition(_STAR)[0].lower().rpartition("/")[2],
    )


def caught_by(pattern: Pattern, part: SimpleCommand) -> Catch:
    """Whether one simple command falls under a pattern, its flags in any order and spelling."""
    if not part.words:
        return Catch.NO
    fits = _fits(pattern, part) if pattern.names(part.name) else Catch.NO
    return fits if fits is Catch.YES else max(fits, part_caught(pattern.rule.pattern or "", part))


def _fits(pattern: Pattern, part: SimpleCommand) -> Catch:
    words = sort_words(part.name, part.words[1:], [index - 1 for index in part.unknown])
    here = all(_has(words.flags, flag) for flag in pattern.flags)
    if here and _operands_fit(pattern.operands, words.operands, unsure=False):
        return Catch.YES
    may = (here or words.open) and bool(part.unknown) and _operands_fit(pattern.operands, words.operands, unsure=True)
    return Catch.MAYBE if may else Catch.NO


def _has(flags: frozenset[str], wanted: str) -> bool:
    """Whether a flag is given; `--forc` may be `--force`."""
    if wanted in flags:
        return True
    return wanted.startswith("--") and any(len(flag) > 2 and wanted.startswith(flag) for flag in flags)


def _operands_fit(wanted: Sequence[str], given: Sequence[Operand], *, unsure: bool) -> bool:
    """Whether the words fit the pattern's in order; `*` takes one or more, a closing `*` any rest, none included."""
    end = len(wanted)
    states = {0}
    for operand in given:
        after = set(states) if operand.value else set()
        for state in states:
            if unsure and not operand.known:
                after.update(range(state, end + 1))
            if state < end and wanted[state] == _STAR:
                after.update((state, state + 1))
            elif state < end and operand.known and _same(operand.text, wanted[state]):
                after.add(state + 1)
        states = after
        if not states:
            return False
    return end in states or (end - 1 in states and wanted[-1] == _STAR)


def _same(word: str, wanted: str) -> bool:
    return word == wanted or fnmatchcase(word, wanted) or ("/" in word and fnmatchcase(_short(word), wanted))


def _short(path: str) -> str:
    """A path without what changes nothing: `//`, `/./`, a closing `/`."""
    path = re.sub(r"/(?:\.?/)+", "/", path + "/")
    return path.rstrip("/") or "/"


def sort_words(name: str, words: Sequence[str], unknown: Sequence[int] = (), *, written: bool = False) -> Sorted:
    """A command's flags as a set, `-rf` and `--recursive --force` alike, and its other words.

    `written` reads the words of a pattern, which mean what they say: no abbreviations, and no values of options.
    """
    flags: set[str] = set()
    operands: list[Operand] = []
    option, may_be_flag = False, False
    for index, word in enumerate(words):
        if word == "--":
            operands += [
                Operand(word, index + 1 + at not in unknown, value=False) for at, word in enumerate(words[index + 1 :])
            ]
            break
        known = index not in unknown
        if known and word.startswith("-") and len(word) > 1:
            flags |= _flags(name, word, written)
            option = not written and "=" not in word
            continue
        operands.append(Operand(word, known, option))
        option, may_be_flag = False, may_be_flag or not known
    if name == "git" and any(operand.text.startswith("+") for operand in operands[1:]):
        flags.add("f")
    return Sorted(frozenset(flags), operands, may_be_flag)


@lru_cache(maxsize=4096)
def _flags(name: str, word: str, written: bool) -> frozenset[str]:  # noqa: FBT001 - a cache takes positions
    if word.startswith("--"):
        plain = word.partition("=")[0]
        table = _LONG_FLAGS.get(name, {})
        meant = {short for long, short in table.items() if long == plain or (not written and long.startswith(plain))}
        return frozenset(meant or {plain}) if written else frozenset({plain, *meant})
    same = _SAME_LETTER.get(name, {})
    letters = {same.get(letter, letter) for letter in word[1:]}
    if written:
        return frozenset(letters) if len(word) <= _MOST_LETTERS + 1 else frozenset({word})
    return frozenset({word, *letters})
