"""When a hook applies: the matcher, parsed once and refused early.

Empty or `*` is everything · plain names joined by `|` or `,` are exact · names with `*` or `?` are globs · anything
else is a regular expression, searched in the subject. `Task` and `Agent` name the same tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from hookline.core.globs import name_expression
from hookline.core.hooks.tools import OTHER_NAMES
from hookline.errors import MatcherError

_NAMES = re.compile(r"[\w\-,| ]*", re.ASCII)
_GLOBS = re.compile(r"[\w\-,| *?]*", re.ASCII)
_PYTHON_ONLY = re.compile(r"\(\?(?:[aiLmsux]+(?:-[imsx]+)?[:)]|P[<=>])")

Test = Callable[[str], bool]


class Matcher(msgspec.Struct, frozen=True):
    """Says whether a subject is meant; `pattern` is what the user wrote."""

    pattern: str
    test: Test | None = None

    @property
    def matches_all(self) -> bool:
        """Whether no subject is left out."""
        return self.test is None

    def matches(self, subject: str | None) -> bool:
        """Whether `subject` is meant; an event without a subject is always meant (FACTS.md §5: matcher ignored)."""
        if self.test is None or subject is None:
            return True
        return bool(self.test(subject) or (subject in OTHER_NAMES and self.test(OTHER_NAMES[subject])))


EVERYTHING = Matcher("")


def parse_matcher(matcher: str | re.Pattern[str] | Test | None) -> Matcher:
    """The matcher that a user wrote; one that cannot be understood is refused here, with its position."""
    if matcher is None:
        return EVERYTHING
    if isinstance(matcher, re.Pattern) and isinstance(matcher.pattern, str):
        return Matcher(matcher.pattern, _search(matcher))
    if callable(matcher):
        return Matcher(getattr(matcher, "__name__", "predicate"), matcher)
    if not isinstance(matcher, str):
        raise MatcherError(str(matcher), f"expected text, got {type(matcher).__name__}")
    return _parse(matcher)


@lru_cache(maxsize=4096)
def _parse(pattern: str) -> Matcher:
    if pattern.strip() in ("", "*"):
        return Matcher(pattern) if pattern else EVERYTHING
    if _NAMES.fullmatch(pattern):
        return Matcher(pattern, frozenset(_parts(pattern)).__contains__)
    if _GLOBS.fullmatch(pattern):
        return Matcher(pattern, _any([name_expression(part) for part in _parts(pattern)]))
    return Matcher(pattern, _search(_regex(pattern)))


def _any(expressions: Sequence[re.Pattern[str]]) -> Test:
    return lambda subject: any(expression.fullmatch(subject) for expression in expressions)


_LONGEST = 1000
"""Letters of a subject that a user's expression is tried on, since it may backtrack; tools have shorter names."""


def _search(expression: re.Pattern[str]) -> Test:
    return lambda subject: len(subject) > _LONGEST or expression.search(subject) is not None


def _parts(pattern: str) -> list[str]:
    return [part.strip() for part in re.split(r"[|,]", pattern) if part.strip()]


def _regex(pattern: str) -> re.Pattern[str]:
    alien = _PYTHON_ONLY.search(pattern)
    if alien:
        problem = f"`{alien.group()}` is not understood where hook files are shared; spell it out, as in `[Bb]ash`"
        raise MatcherError(pattern, problem, alien.start())
    try:
        return re.compile(pattern)
    except re.error as error:
        raise MatcherError(pattern, f"not a regular expression: {error.msg}", error.pos) from None
    except (RecursionError, OverflowError):
        raise MatcherError(pattern, "too complex to compile") from None
