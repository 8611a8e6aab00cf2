"""JSON as text, both ways."""

from typing import Any

import pytest

from hookline.core.wire.json_text import check_says, read_object
from hookline.errors import ReplyError


@pytest.mark.parametrize("value, problem", [
    ({"a": [1, "b", None, True, {"c": 1.5}]}, ""),
    ({"a": [{1: 2}]}, "a key is `1`"),
    ({"a": (b"x",)}, "`bytes` is not a value of JSON"),
    ([float("nan")], "`nan` is not a number of JSON"),
])  # fmt: skip
def test_a_value_that_json_cannot_say_is_refused(value: Any, problem: str) -> None:
    """What is written would be read as something else."""
    if not problem:
        check_says(value, "the reply", ReplyError)
        return
    with pytest.raises(ReplyError, match=problem):
        check_says(value, "the reply", ReplyError)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b"null", b'{"a": "\xff"}', b"[" * 100_000, '{"a": "\ud800"}', b'{"a": 1} and more'],
    ids=["nothing", "cut off", "a list", "null", "not UTF-8", "too deep", "half a character", "more behind it"],
)  # fmt: skip
def test_what_is_not_an_object_is_passed_over(data: bytes | str) -> None:
    """Whoever looks through lines of others is never stopped by one of them."""
    assert read_object(data) is None


def test_an_object_is_read() -> None:
    assert read_object(b'{"a": [1]}') == {"a": [1]}
