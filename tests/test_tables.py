"""Tables that are tried row by row in one test: the row that fails is named."""

import pytest

from tests.tables import each


@each("number, double", [(1, 2), (2, 4)])
def test_every_row_is_tried(number: int, double: int) -> None:
    """As with parameters."""
    assert 2 * number == double


def test_a_row_that_fails_is_named_and_the_others_are_tried() -> None:
    """With its reason."""
    tried = []

    @each("number", [1, 2, 3])
    def odd(number: int) -> None:
        tried.append(number)
        assert number % 2, "even"

    with pytest.raises(AssertionError, match=r"1 of 3 rows fail:\n\{'number': 2\}: AssertionError: even"):
        odd()
    assert tried == [1, 2, 3]


@each("number", [1, 2])
async def test_rows_may_be_awaited(number: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """And take fixtures."""
    assert tmp_path_factory is not None
    assert number
