"""`${NAME}`, filled in."""

import re

import pytest

from hookline.core.placeholders import BRACED, DOTTED, EITHER, WITH_DEFAULT, fill, in_every_text

VALUES = {"A": "1", "AB": "2", "EMPTY": "", "a.b": "3"}


@pytest.mark.parametrize("form, text, filled", [
    (BRACED, "${A}${AB} $A ${GONE} ${A:-9} ${ A} ${}", "12 $A ${GONE} ${A:-9} ${ A} ${}"),
    (EITHER, "$A ${A} $AB $ABC ${A $ $$A", "1 1 2 $ABC ${A $ $1"),
    (DOTTED, "${a.b} ${A} $a.b", "3 1 $a.b"),
    (WITH_DEFAULT, "${A:-9} ${GONE:-9} ${GONE:-} ${GONE} ${EMPTY:-9} $A", "1 9    $A"),
])  # fmt: skip
def test_placeholders_are_filled_in(form: re.Pattern[str], text: str, filled: str) -> None:
    """Each form replaces what it knows and leaves everything else to whoever reads the text next."""
    assert fill(text, VALUES.get, form) == filled


def test_a_value_is_not_filled_in_again() -> None:
    """What comes from outside cannot name further variables."""
    assert fill("${A}", {"A": "${B}", "B": "secret"}.get) == "${B}"


def test_every_text_of_a_value_is_changed() -> None:
    """Lists and objects are gone through; keys and everything that is not text stay."""
    assert in_every_text({"a": ["x", 1, {"x": "x"}], "b": None, "c": ("x",)}, str.upper) == {
        "a": ["X", 1, {"x": "X"}],
        "b": None,
        "c": ["X"],
    }
