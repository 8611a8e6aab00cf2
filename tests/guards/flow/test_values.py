"""What counts as an address in a text, and that a long text is read through once."""

import re

from hypothesis import given
from hypothesis import strategies as st

from hookline.guards.flow import values

PARTS = ["a", "x", "1", "_", ".", "+", "-", "'", "@", "@b.c", "www.", "http", "://", "/", " ", "com", "(", "é"]


PLAIN = (
    ("email", re.compile(r"\w[\w.+'-]*@[\w-]+(?:\.[\w-]+)+")),
    ("url", re.compile(r"(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>\"'`\]\[(){}|\\]+", re.IGNORECASE)),
    *values._PATTERNS[2:],
)
"""The same as it is meant; a word without an address is walked over from each of its characters."""


def from_every_character(text: str) -> list[tuple[str, str]]:
    found, taken = list[tuple[str, str]](), set[int]()
    for kind, pattern in PLAIN:
        for match in pattern.finditer(text):
            if pattern is not values._DOMAIN or match.start() not in taken:
                found.append((kind, match.group().rstrip(values._END)))
                taken |= set(range(*match.span()))
    return found


def plain_kind(text: str) -> str:
    kinds = [kind for kind, pattern in PLAIN if pattern.fullmatch(text)]
    return kinds[0] if kinds else "url" if text.startswith("//") else "name"


@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join))
def test_what_is_found_is_what_the_plain_patterns_find(text: str) -> None:
    """An address begins where the leftmost match of its pattern does; a whole text is of the first kind that fits."""
    assert [(one.kind, one.text) for one in values.addresses(text)] == from_every_character(text)
    assert values.kind_of(text) == plain_kind(text.strip())


def test_a_word_of_half_a_million_characters_is_read_once() -> None:
    """From each of its characters to its end it would take an hour."""
    for word in ("x", "a.", "1a", "+_"):
        assert values.addresses(word * (500_000 // len(word))) == ()
