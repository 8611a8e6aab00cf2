"""Repeating the suite: what counts as a row of green runs, and that it can be left and taken up again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.processes.service.conftest import until
from tools.repeat import green_in_a_row

ROOT = Path(__file__).parents[2]
GREEN, RED = "2026-11-16 06:50:00 abc: exit 0 after 9 s", "2026-11-16 06:50:00 abc: exit 1 after 9 s"
TEST = """
import pathlib, threading
def test_it():
    if pathlib.Path("wait").exists():
        pathlib.Path("begun").touch()
        threading.Event().wait(300)
    assert not pathlib.Path("fail").exists()
"""

BACKGROUND = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize(
    "log, tested, green",
    [
        ([], "abc", 0),
        ([GREEN, GREEN], "abc", 2),
        ([GREEN, RED, "    tests/test_x.py::test_y", GREEN], "abc", 1),
        ([GREEN, RED], "abc", 0),
        ([GREEN], "def", 0),
        ([GREEN.replace("abc", "abc-dirty")], "abc-dirty", 0),
    ],
)
def test_only_green_runs_of_the_same_commit_since_the_last_failure_count(
    log: list[str], tested: str, green: int
) -> None:
    """A tree with changes may be another one each time."""
    assert green_in_a_row(log, tested) == green


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # most of the time of such a small run
    (tmp_path / "test_one.py").write_text(TEST)
    (tmp_path / ".gitignore").write_text("*\n!test_one.py\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "test_one.py"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    return tmp_path


def command(times: int, workers: int = 0) -> list[str]:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tools.repeat import main; sys.exit(main(sys.argv[1:]))"
    return [
        sys.executable,
        "-c",
        code,
        "--idle",
        "--times",
        str(times),
        "--most",
        "2",
        "-p",
        "xdist",
        "-n",
        str(workers),
    ]


def test_a_row_goes_on_where_it_was_left(project: Path) -> None:
    """Ctrl-C ends the run and everything it started; the green runs before it are not made again."""
    first = subprocess.run(command(1), cwd=project, capture_output=True, text=True, check=False)
    (project / "wait").touch()
    with subprocess.Popen(
        [sys.executable, "-c", BACKGROUND, *command(2, workers=1)], cwd=project, stdout=subprocess.PIPE, text=True
    ) as left:
        until((project / "begun").exists)
        below = psutil.Process(left.pid).children(recursive=True)
        left.send_signal(signal.SIGINT)
        said, _ = left.communicate(timeout=240)
    (project / "wait").unlink()
    last = subprocess.run(command(2), cwd=project, capture_output=True, text=True, check=False)

    assert (first.returncode, left.returncode, last.returncode) == (0, 130, 0), (first, said, last)
    assert "stopped after 1 green in a row" in said
    assert psutil.wait_procs(below, timeout=30)[1] == []
    assert [line.count("1 passed") for line in (project / "repeat.log").read_text().splitlines()] == [1, 1]
    assert last.stdout.endswith("2 of 2 runs green in a row\n")


def test_a_failing_test_is_named(project: Path) -> None:
    """The count stays at nothing, and the end says so."""
    (project / "fail").touch()
    done = subprocess.run(command(1), cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stdout.count("    test_one.py::test_it\n") == 2
    assert "assert not True" in max(project.glob("repeat.*.log")).read_text()
    assert done.stdout.endswith("0 of 1 runs green in a row\n")
