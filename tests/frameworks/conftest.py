"""What the tests of adapters share."""

import os

import pytest

from tests.frameworks import plays


@pytest.fixture(scope="session", autouse=True)
def plays_are_shared(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each environment is played once in a run, whichever of the workers needs it first."""
    mine = tmp_path_factory.getbasetemp()
    folder = (mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine) / "plays"
    folder.mkdir(exist_ok=True)
    plays.shared = folder
