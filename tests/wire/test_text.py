"""JSON as text, both ways."""

from typing import Any

import pytest

from hookline.errors import ReplyError
from hookline.wire.text import check_says


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
