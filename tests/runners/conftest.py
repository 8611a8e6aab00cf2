"""What the tests of runners share: time."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """A warm interpreter may take its time: a run that gives up on it is an ordinary one, as in life."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("HELLO_LIMIT", "ANSWER_LIMIT"):
            patch.setattr(f"hookline.runners.warm.{limit}", 120.0)
        yield
