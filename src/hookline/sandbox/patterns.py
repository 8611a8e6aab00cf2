"""Command patterns such as `rm -rf *`, held against the words of one command: flags in any order and any spelling.

Shared by the text guards and the supervisor. The latter starts in every confined line, so this module imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LONG_FLAGS = {
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
STAR = "*"


class Operand:
    """A word that is no flag; right behind an option it may be that option's value."""

    __slots__ = ("known", "text", "value")

    known: bool
    text: str
    value: bool

    def __init__(self, text: str, *, known: bool, value: bool) -> None:
        self.text, self.known, self.value = text, known, value


class Sorted:
    """A command's words: its flags as a set, and the other words in order.

    `open` says whether a word that is known only later may still be a flag.
    """

    __slots__ = ("flags", "open", "operands")

    flags: frozenset[str]
    open: bool
    operands: list[Operand]

    def __init__(self, flags: frozenset[str], operands: list[Operand], *, open: bool) -> None:
        self.flags, self.operands, self.open = flags, operands, open


class CommandPattern:
    """One pattern: a program's name, the flags it must have, and its other words in order."""

    __slots__ = ("flags", "name", "operands", "text")

    flags: frozenset[str]
    name: str
    text: str
    operands: tuple[str, ...]

    def __init__(self, text: str) -> None:
        words = text.removesuffix(":*").split() + [STAR] * text.endswith(":*")
        found = sort_words(words[0], words[1:], written=True)
        self.text, self.name, self.flags = text, words[0], found.flags
        self.operands = tuple(each.text for each in found.operands)

    def names(self, name: str) -> bool:
        """Whether a program of this name is meant: `rm`, `rm.exe`, and GNU's `grm` where it has that name."""
        name = name.removesuffix(".exe")
        return name == self.name or name == _GNU.get(self.name) or (STAR in self.name and matches_glob(self.name, name))

    def takes(self, name: str, words: Sequence[str]) -> bool:
        """Whether the pattern matches a program called `name` with these arguments, all of them known."""
        if self.names(name):
            found = sort_words(self.name if STAR not in self.name else name, words)
            if self.has_flags(found.flags) and operands_fit(self.operands, found.operands, unsure=False):
                return True
        return _whole(self.text, " ".join([name, *words]))

    def has_flags(self, flags: frozenset[str]) -> bool:
        """Whether all the pattern's flags are given; `--forc` may be `--force`."""
        return all(_has(flags, flag) for flag in self.flags)


def _whole(pattern: str, line: str) -> bool:
    """Whether a pattern matches a whole line; a closing ` *` also takes nothing."""
    pattern = pattern.removesuffix(":*") + " *" if pattern.endswith(":*") else pattern
    return matches_glob(pattern, line) or (pattern.endswith(" *") and matches_glob(pattern[:-2], line))


def _has(flags: frozenset[str], wanted: str) -> bool:
    if wanted in flags:
        return True
    if wanted.endswith(STAR):
        return any(flag.startswith(wanted[:-1]) for flag in flags)
    return wanted.startswith("--") and any(len(flag) > 2 and wanted.startswith(flag) for flag in flags)


def operands_fit(wanted: Sequence[str], given: Sequence[Operand], *, unsure: bool) -> bool:
    """Whether the words fit the pattern's in order; `*` takes one or more, a closing `*` any rest, none included."""
    end = len(wanted)
    states = {0}
    for operand in given:
        after = set(states) if operand.value else set()
        for state in states:
            if unsure and not operand.known:
                after.update(range(state, end + 1))
            if state < end and wanted[state] == STAR:
                after.update((state, state + 1))
            elif state < end and operand.known and _same(operand.text, wanted[state]):
                after.add(state + 1)
        states = after
        if not states:
            return False
    return end in states or (end - 1 in states and wanted[-1] == STAR)


def _same(word: str, wanted: str) -> bool:
    if word == wanted or matches_glob(wanted, word):
        return True
    return "/" in word and matches_glob(wanted, shortest(word))


def shortest(path: str) -> str:
    """A path without what changes nothing: `//`, `/./`, a closing `/`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return ("/" if path.startswith("/") else "") + "/".join(parts) or "."


def matches_glob(pattern: str, text: str) -> bool:
    """Whether a pattern with `*`, `?` and `[…]` matches a whole text; linear for `*`, whatever the text."""
    if "[" in pattern:
        from fnmatch import fnmatchcase

        return fnmatchcase(text, pattern)
    at = position = back = 0
    star = -1
    while at < len(text):
        if position < len(pattern) and pattern[position] == STAR:
            star, back = position, at
            position += 1
        elif position < len(pattern) and pattern[position] in ("?", text[at]):
            at, position = at + 1, position + 1
        elif star >= 0:
            back += 1
            at, position = back, star + 1
        else:
            return False
    return pattern[position:].strip(STAR) == ""


def sort_words(name: str, words: Sequence[str], unknown: Collection[int] = (), *, written: bool = False) -> Sorted:
    """A command's flags as a set, `-rf` and `--recursive --force` alike, and its other words.

    `written` reads the words of a pattern, which mean what they say: no abbreviations, and no values of options.
    """
    flags: set[str] = set()
    operands: list[Operand] = []
    option, may_be_flag = False, False
    unknown = frozenset(unknown)
    for index, word in enumerate(words):
        known = index not in unknown
        if word == "--" and known:
            rest = range(index + 1, len(words))
            operands += [Operand(words[at], known=at not in unknown, value=False) for at in rest]
            break
        if known and word.startswith("-") and len(word) > 1:
            flags |= _flags(name, word, written)
            option = not written and "=" not in word
            continue
        operands.append(Operand(word, known=known, value=option))
        option, may_be_flag = False, may_be_flag or not known
    if name == "git" and any(operand.text.startswith("+") for operand in operands[1:]):
        flags.add("f")
    return Sorted(frozenset(flags), operands, open=may_be_flag)


def _flags(name: str, word: str, written: bool) -> frozenset[str]:  # noqa: FBT001 - read as one word at its two calls
    if word.startswith("--"):
        return _long_flags(name, word.partition("=")[0], written)
    same = _SAME_LETTER.get(name, {})
    letters = {same.get(letter, letter) for letter in word[1:]}
    if written:
        return frozenset(letters) if len(word) <= _MOST_LETTERS + 1 else frozenset({word})
    return frozenset({word, *letters})


def _long_flags(name: str, word: str, written: bool) -> frozenset[str]:  # noqa: FBT001 - as above
    table = LONG_FLAGS.get(name, {})
    if written and word.endswith(STAR):
        meant = {short for long, short in table.items() if long.startswith(word[:-1])}
    else:
        meant = {short for long, short in table.items() if long == word or (not written and long.startswith(word))}
    return frozenset(meant or {word}) if written else frozenset({word, *meant})
