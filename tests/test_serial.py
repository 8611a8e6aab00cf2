"""The `serial` marker's promise, kept by the lock in conftest."""

import os
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import _turn

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no flock; there the suite runs in one process")


class Other(threading.Thread):
    """Another worker with one test."""

    def __init__(self, folder: Path, *, alone: bool) -> None:
        super().__init__(daemon=True)
        self.folder, self.alone = folder, alone
        self.runs, self.end = threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with _turn(self.folder, alone=self.alone):
            self.runs.set()
            self.end.wait(30)


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")


def test_ordinary_tests_run_beside_each_other(tmp_path: Path) -> None:
    """Two workers run two tests at once."""
    with _turn(tmp_path, alone=False):
        other = Other(tmp_path, alone=False)

        assert other.runs.wait(30)
        other.end.set()
        other.join(30)


@pytest.mark.parametrize("mine, theirs", [(False, True), (True, False), (True, True)])
def test_a_serial_test_never_runs_beside_another(mine: bool, theirs: bool, tmp_path: Path) -> None:
    """Whoever comes second waits for the first to end, if one of them is serial."""
    with ExitStack() as turn:
        turn.enter_context(_turn(tmp_path, alone=mine))
        other = Other(tmp_path, alone=theirs)

        assert not other.runs.wait(0.2)
        turn.close()
        assert other.runs.wait(30)
        other.end.set()
        other.join(30)
