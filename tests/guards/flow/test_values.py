"""What counts as an address in a text, and that a long text is read through once."""

from hypothesis import given
from hypothesis import strategies as st

from hookline.guards.flow import values

PARTS = ["a", "x", "1", "_", ".", "+", "-", "'", "@", "@b.c", "www.", "http", "://", "/", " ", "com", "(", "é"]


def from_every_character(text: str) -> list[tuple[str, str]]:
    """What the full patterns find; a word without an address is walked over from each of its characters."""
    found, taken = list[tuple[str, str]](), set[int]()
    for kind, pattern in values._PATTERNS:
        for match in pattern.finditer(text):
            if pattern is not values._DOMAIN or match.start() not in taken:
                found.append((kind, match.group().rstrip(values._END)))
                taken |= set(range(*match.span()))
    return found


@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join))
def test_the_finders_find_what_the_patterns_mean(text: str) -> None:
    """An address begins where the leftmost match of its pattern does."""
    assert [(one.kind, one.text) for one in values.addresses(text)] == from_every_character(text)


def test_a_word_of_half_a_million_characters_is_read_once() -> None:
    """From each of its characters to its end it would take an hour."""
    for word in ("x", "a.", "1a", "+_"):
        assert values.addresses(word * (500_000 // len(word))) == ()
