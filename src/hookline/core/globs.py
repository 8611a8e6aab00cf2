"""Patterns with `*`, over texts and over paths: the one home of globs. Pure: no file is looked at.

Nothing here backtracks: whatever the pattern and the text, matching takes time linear in the text. Over texts `*` is
the only wildcard that spans, so the leftmost place of every piece between two stars is right, and an atomic group
finds it. Over paths `*` stops at a slash and `**` does not; a pattern that mixes several is run as a set of states,
one bit each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

Token = str | None  # one letter of a pattern, or None for a star


def tokens(pattern: str) -> tuple[Token, ...]:
    """A pattern letter by letter; a backslash takes a star's meaning away."""
    return tuple(None if piece == "*" else piece[-1] for piece in re.findall(r"\\.|.", pattern, re.DOTALL))


def text_expression(pattern: Iterable[Token], tail: str = "") -> re.Pattern[str]:
    """What matches a whole text: stars are any text, `tail` is an expression for what may follow."""
    pieces = [""]
    for token in pattern:
        if token is None:
            pieces.append("")
        else:
            pieces[-1] += re.escape(token)
    return _spanned(pieces, tail)


def _spanned(pieces: list[str], tail: str = "") -> re.Pattern[str]:
    """What matches these expressions in order, with any text between them."""
    first, *rest = pieces
    if not rest:
        return re.compile(first + tail, re.DOTALL)
    *middle, last = rest
    return re.compile(first + "".join(f"(?>.*?{piece})" for piece in middle if piece) + f".*{last}{tail}", re.DOTALL)


@lru_cache(maxsize=1024)
def name_expression(pattern: str) -> re.Pattern[str]:
    """What matches a whole name: `*` is any text, `?` one letter."""
    return _spanned([re.escape(piece).replace(r"\?", ".") for piece in pattern.split("*")])


def path_matches(
    pattern: str, path: str, *, bases: tuple[str, ...], project_dir: str, home: str, any_case: bool = False
) -> bool:
    """Whether an absolute path falls under a pattern of a rule.

    `//x` starts at the root, `~/x` at home, `/x` at the project; anything else at one of `bases`, and a pattern without
    a slash at any depth below them. A pattern that names a folder covers what is in it. With `any_case`, so does one
    that is written in other letters: there are disks to which `.ENV` is `.env`.
    """
    for start, base in (("//", "/"), ("~/", home), ("/", project_dir)):
        if pattern.startswith(start):
            return _under(pattern[len(start) :], path, base, anchored=True, any_case=any_case)
    pattern = pattern.removeprefix("./")
    anchored = "/" in pattern.rstrip("/")
    return any(_under(pattern, path, base, anchored=anchored, any_case=any_case) for base in bases)


def _under(pattern: str, path: str, base: str, *, anchored: bool, any_case: bool) -> bool:
    base = base.rstrip("/")
    if not path.startswith(base + "/"):
        return False
    return _path_test(pattern.strip("/"), anchored=anchored, any_case=any_case)(path[len(base) + 1 :])


@lru_cache(maxsize=1024)
def _path_test(pattern: str, *, anchored: bool, any_case: bool) -> Callable[[str], bool]:
    """Whether a relative path falls under a pattern; `**` spans folders, `*` and `?` do not."""
    parts = [_DEEP] if not anchored else []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts, at = [*parts, _DEEP], at + 3
        elif pattern.startswith("**", at):
            parts, at = [*parts, _ANY], at + 2
        else:
            piece, at = _one(pattern, at)
            parts.append(piece)
    flags = re.DOTALL | (re.IGNORECASE if any_case else 0)
    if parts.count(_DEEP) <= 1 and sum(part in (_ANY, _WITHIN) for part in parts) <= 1:  # one way to match, or none
        expression = re.compile("".join(parts) + "(?:/.*)?", flags)
        return lambda path: expression.fullmatch(path) is not None
    return States(parts, flags).matches_path


_DEEP, _ANY, _WITHIN = "(?:.*/)?", ".*", "[^/]*"
_MOST_LETTERS = 512


class States:
    """Where in a pattern a text that is read letter by letter may be: a set of states, one bit each.

    Linear in the text, however many stars there are. The steps of a pattern are expressions for one letter, or one of
    the stars; a set is a number, so that one machine serves all who read.
    """

    def __init__(self, parts: Iterable[str], flags: int = re.DOTALL) -> None:
        steps: list[str] = []
        self._skips = 0
        for part in parts:
            if part == _DEEP:  # nothing at all, or anything that ends with a slash
                self._skips |= 1 << len(steps)
                steps += ["", _ANY, "/"]
            else:
                steps.append(part)
        stars = (_ANY, _WITHIN)
        self._stars = sum(1 << at for at, step in enumerate(steps) if step in stars)
        self._steps = [re.compile((step[:-1] if step in stars else step) or "(?!)", flags) for step in steps]
        self._letters: dict[str, tuple[int, int]] = {}
        self.end: int = 1 << len(steps)
        self.first: int = self._closed(1)

    def read(self, states: int, text: str) -> int:
        for char in text:
            moves, stays = self._letters.get(char) or self._accepting(char)
            states = self._closed((states & moves) << 1 | states & stays)
        return states

    def read_unknown(self, states: int) -> int:
        return (self.end << 1) - (states & -states) if states else 0

    def matches_path(self, path: str) -> bool:
        """Whether the path, or a folder it lies in, is what the pattern describes."""
        states = self.first
        for char in path:
            if char == "/" and states & self.end:
                return True
            states = self.read(states, char)
            if not states:
                return False
        return bool(states & self.end)

    def _accepting(self, char: str) -> tuple[int, int]:
        """The states that a letter moves on, and those that it stays in."""
        if len(self._letters) >= _MOST_LETTERS:
            self._letters.clear()
        fits = sum(1 << at for at, step in enumerate(self._steps) if step.fullmatch(char))
        found = self._letters[char] = fits & ~self._stars, fits & self._stars
        return found

    def _closed(self, states: int) -> int:
        while True:
            skipped = states & self._skips
            more = states | (states & self._stars) << 1 | skipped << 1 | skipped << 3
            if more == states:
                return states
            states = more


def text_states(pattern: Iterable[Token]) -> States:
    """The states of a pattern over texts, for those of which parts are unknown."""
    return States(_ANY if token is None else re.escape(token) for token in pattern)


def _one(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at]
    if char == "*":
        return _WITHIN, at + 1
    if char == "?":
        return "[^/]", at + 1
    closing = pattern.find("]", at + 2) if char == "[" else -1
    if closing > 0:
        negated = "^" if pattern[at + 1] in "!^" else ""
        members = re.escape(pattern[at + 1 + len(negated) : closing]).replace(r"\-", "-")
        try:
            re.compile(f"[{members}]")
        except re.error:
            return re.escape(char), at + 1
        return f"(?![/])[{negated}{members}]", closing + 1
    if char == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    return re.escape(char), at + 1
