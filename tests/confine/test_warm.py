"""Confined lines from a program that runs on: held as any other, without a new interpreter for each."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.confine.policy import Policy
from hookline.confine.warm import WarmLine, WarmStarter
from hookline.guards.confining import unavailable

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")


@pytest.fixture
def starter() -> Iterator[WarmStarter]:
    starter = WarmStarter()
    yield starter
    starter.close()


def start(starter: WarmStarter, folder: Path, line: str) -> WarmLine:
    with (folder / "output").open("ab") as output, Path(os.devnull).open("rb") as nothing:
        files = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}
        policy, env = Policy((str(folder / "project"),), block=("chmod *",)), {**os.environ, "WORD": "given"}
        return starter.start(policy, ["bash", "-c", line], cwd=str(folder / "project"), env=env, files=files)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def test_a_line_has_its_own_folder_variables_and_exit_code(starter: WarmStarter, folder: Path) -> None:
    codes = [start(starter, folder, line).exit_code() for line in ("echo $WORD > made; exit 7", "true", "exit 3")]

    assert codes == [7, 0, 3]
    assert (folder / "project" / "made").read_text() == "given\n"


def test_it_is_held(starter: WarmStarter, folder: Path) -> None:
    """Writes and program starts, with the reasons on its own standard error."""
    start(starter, folder, "touch ../outside; touch made; $(printf chmod) 700 made").exit_code()

    assert sorted(path.name for path in folder.iterdir()) == ["output", "project"]
    said = (folder / "output").read_text()
    assert "hookline: refused to write" in said
    assert "the pattern `chmod *`" in said


def test_lines_run_side_by_side_and_lead_sessions_of_their_own(starter: WarmStarter, folder: Path) -> None:
    for number in range(3):
        os.mkfifo(folder / "project" / f"pipe{number}")
    lines = [start(starter, folder, f"read -r x < pipe{number}; exit 5") for number in range(3)]
    groups = {os.getpgid(line.pid) for line in lines}
    os.killpg(lines[0].pid, signal.SIGKILL)

    assert groups == {line.pid for line in lines}
    assert lines[0].exit_code() is None
    assert start(starter, folder, "echo a > pipe1; echo b > pipe2").exit_code() == 0
    assert [line.exit_code() for line in lines[1:]] == [5, 5]


def test_if_its_process_was_killed_another_one_is_started(starter: WarmStarter, folder: Path) -> None:
    start(starter, folder, "true").exit_code()
    assert starter.process is not None
    starter.process.kill()
    starter.process.wait()

    assert start(starter, folder, "exit 4").exit_code() == 4
