"""What tests of files share."""

from pathlib import Path

import pytest

from tests.settings.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    for folder in (made.project / ".claude", made.home / ".claude"):
        folder.mkdir(parents=True)
    return made
