"""What the tests of confinement share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox import arena


@pytest.fixture(scope="module", autouse=True)
def namespace_of_this_file() -> Iterator[None]:
    """The throw-away namespace that a file's tables share ends with the file."""
    yield
    arena.end_idle()
