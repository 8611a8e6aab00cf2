"""Globs: what they match, and that no pattern makes anybody wait."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.core.globs import name_expression, path_matches, text_expression, text_states, tokens
from hookline.core.hooks.condition import PathContext, RuleMatch, parse_rule, part_caught
from hookline.core.hooks.hook import parse_matcher
from hookline.core.shell import parse_line

patterns = st.text("ab*?/", max_size=8)
texts = st.text("ab/", max_size=10)


@given(patterns, texts)
def test_over_texts_a_star_is_any_text(pattern: str, text: str) -> None:
    """As the plain expression says, which backtracks."""
    plain = "".join(".*" if char == "*" else re.escape(char) for char in pattern)

    assert bool(text_expression(tokens(pattern)).fullmatch(text)) is bool(re.fullmatch(plain, text, re.DOTALL))


@given(patterns, texts)
def test_over_names_a_question_mark_is_one_letter(pattern: str, text: str) -> None:
    """And everything else is itself."""
    plain = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)

    assert bool(name_expression(pattern).fullmatch(text)) is bool(re.fullmatch(plain, text, re.DOTALL))


@given(patterns, texts)
def test_states_agree_with_the_expression(pattern: str, text: str) -> None:
    """Letter by letter it comes to the same."""
    machine = text_states(tokens(pattern))
    states = machine.read(machine.first, text)

    assert bool(states & machine.end) is bool(text_expression(tokens(pattern)).fullmatch(text))


paths = st.lists(st.sampled_from(["**/", "**", "*", "?", "a", "b", "/", "[ab]", "ab/"]), max_size=6).map("".join)


@given(paths, st.text("abAB/", min_size=1, max_size=9), st.booleans())
def test_over_paths_a_star_stops_at_a_slash(pattern: str, path: str, any_case: bool) -> None:
    """As the plain expression says; a pattern that names a folder covers what is in it."""
    if pattern.startswith(("/", "~")) or not pattern.strip("/"):
        return
    out = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    for piece in re.findall(r"\*\*/|\*\*|\[ab\]|.", pattern.strip("/")):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "[ab]": "[ab]"}.get(piece, re.escape(piece))
    plain = re.compile(out + "(?:/.*)?", re.DOTALL | (re.IGNORECASE if any_case else 0))

    matched = path_matches(pattern, f"/p/{path}", bases=("/p",), project_dir="/p", home="/h", any_case=any_case)

    assert matched is bool(plain.fullmatch(path))


def test_a_star_behind_a_backslash_is_a_letter_among_any_number_of_stars() -> None:
    """It was taken for a star of its own where a pattern had several, and could not be read."""
    pattern, bases = r"a*/**/\*b*/c", ("/p",)

    assert path_matches(pattern, "/p/ax/y/*bz/c", bases=bases, project_dir="/p", home="/h")
    assert not path_matches(pattern, "/p/ax/y/zbz/c", bases=bases, project_dir="/p", home="/h")


PLACE = PathContext()
LONG = "a" * 65_536
STARS = "*".join("ab" * 20)


@pytest.mark.parametrize("pattern", ["*a*b*c*", f"*{STARS}*", "*" * 200 + "b", "a*" * 100 + "b"])
def test_no_pattern_takes_longer_than_the_text_is_long(pattern: str) -> None:
    """With backtracking each of these would outlast the test's time limit by far."""
    assert not name_expression(pattern).fullmatch(LONG)
    assert not parse_matcher(pattern).matches(LONG)
    assert not parse_rule(f"Agent({pattern}x)").catches("Agent", {"subagent_type": LONG}, PLACE)
    assert not path_matches(f"/**/{pattern}", f"/p/{LONG}", bases=(), project_dir="/p", home="/h")
    assert not path_matches(f"**/{pattern}/**/x", f"/p/{'a/' * 8_000}", bases=("/p",), project_dir="/p", home="/h")
    assert part_caught(f"{pattern}x", parse_line(f"echo {LONG[:60_000]}").commands[0]) is RuleMatch.NO


def test_a_line_of_unknown_words_is_read_once() -> None:
    """65 kB of `$x` took 21 seconds."""
    [part] = parse_line("echo " + "$x " * 20_000).commands

    assert part_caught("git *", part) is RuleMatch.NO
    assert part_caught("echo *y", part) is RuleMatch.MAYBE


def test_a_subject_that_is_too_long_for_an_expression_is_matched() -> None:
    """An expression may take any time on a long text; the hook is asked instead, and can judge for itself."""
    matcher = parse_matcher("^(a+)+$")

    assert (matcher.matches("aaa"), matcher.matches("b"), matcher.matches(LONG + "b")) == (True, False, True)
