"""What tests of the command line share."""

from pathlib import Path

import pytest

from tests.cli.gates import arena, gates
from tests.cli.place import Place

__all__ = ["arena", "gates", "place"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for folder in ("proj", "home"):
        (tmp_path / folder).mkdir()
    return Place(tmp_path)
