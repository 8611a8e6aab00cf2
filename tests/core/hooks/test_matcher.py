"""When a hook applies: the matcher, parsed once and refused early."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.core.hooks.hook import EVERYTHING, parse_matcher
from hookline.errors import MatcherError

MATCHES = [
    (None, "Bash", True),
    ("", "Bash", True),
    ("*", "Bash", True),
    (" ", "Bash", True),
    ("Bash", "Bash", True),
    ("Bash", "BashOutput", False),
    ("bash", "Bash", False),
    ("Write|Edit", "Edit", True),
    ("Write, Edit", "Edit", True),
    ("Write|", "", False),
    ("mcp__*", "mcp__x__y", True),
    ("mcp__*", "Bash", False),
    ("Write|Ed?t", "Edit", True),
    ("Ed?t", "Edits", False),
    ("^Ba.h$", "Bash", True),
    ("Wri.e", "NotebookWrite", True),
    ("mcp__.*__write.*", "mcp__a__write_b", True),
    ("Task", "Agent", True),
    ("Agent", "Task", True),
    ("Task|Bash", "Read", False),
    ("Bash", None, True),
]


@pytest.mark.parametrize("pattern, subject, expected", MATCHES)
def test_a_matcher_means_what_it_says(pattern: str | None, subject: str | None, expected: bool) -> None:
    """Empty or `*` is everything, plain names are exact, `*` and `?` are globs, the rest is searched."""
    assert parse_matcher(pattern).matches(subject) is expected


def test_a_predicate_is_a_matcher() -> None:
    """It is asked with the subject, and is known by its name."""

    def long(subject: str) -> bool:
        return len(subject) > 4

    matcher = parse_matcher(long)

    assert (matcher.matches("Write"), matcher.matches("Bash"), matcher.pattern) == (True, False, "long")
    assert not matcher.matches_all
    assert EVERYTHING.matches_all


REFUSED = [
    ("[", "unterminated character set", 0),
    ("(a", "unterminated subpattern", 0),
    ("(?i)bash", r"`\(\?i\)` is not understood", 0),
    ("x(?P<a>b)", r"`\(\?P<` is not understood", 1),
    ("a{99999999999}", "too complex", None),
]


@pytest.mark.parametrize("pattern, problem, position", REFUSED)
def test_a_matcher_that_cannot_be_understood_is_refused_with_its_position(
    pattern: str, problem: str, position: int | None
) -> None:
    """When it is registered, not when an event comes."""
    with pytest.raises(MatcherError, match=problem) as refused:
        parse_matcher(pattern)

    assert refused.value.position == position


def test_a_matcher_must_be_text() -> None:
    """A number is none."""
    with pytest.raises(MatcherError, match="expected text, got int"):
        parse_matcher(7)  # type: ignore[arg-type]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=30), st.text(max_size=10))
def test_any_text_is_a_matcher_or_is_refused(pattern: str, subject: str) -> None:
    """Nothing else can happen."""
    try:
        matcher = parse_matcher(pattern)
    except MatcherError:
        return
    assert matcher.matches(subject) in (True, False)
