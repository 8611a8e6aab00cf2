"""The tables of lines, held against everything that lets a line pass unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline import Hooks
from hookline.events import PermissionRequest
from hookline.guards import approvals
from hookline.guards.permissions import Rules, decide, edits_only, reads_only
from hookline.replies import Decision
from tests.guards.permissions.lines import MORE_THAN_READING, READING, table
from tests.tables import each

WORLD = ["a", "b", "src/b", "sub/deeper/x"]


def made(here: Path) -> Path:
    for name in WORLD:
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("x\n")
    return here


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project that the lines speak of."""
    return made(tmp_path / "project")


@pytest.fixture(scope="module")
def same_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for all lines: no line is run, and whoever judges one writes nothing."""
    return made(tmp_path_factory.mktemp("lines") / "project")


@each("line", table(MORE_THAN_READING))
async def test_a_line_that_may_do_more_than_read_is_asked_about(line: str, same_project: Path) -> None:
    """In every mode that asks, by the approving guard too; one that runs no program of its own writing is no edit."""
    cwd = str(same_project)
    hooks = Hooks()
    hooks.add(approvals.auto())

    assert not reads_only(line, cwd=cwd, dirs=[cwd], home="/home/nobody")
    for mode in ("default", "plan", "dontAsk"):
        assert decide("Bash", {"command": line}, rules=Rules(), mode=mode, cwd=cwd).behaviour != "allow"
    request = PermissionRequest(cwd=cwd, tool_name="Bash", tool_input={"command": line})
    assert (await hooks.fire(request)).decision is not Decision.ALLOW


@each("line", table(READING))
def test_a_line_that_only_reads_needs_no_question(line: str, same_project: Path) -> None:
    """People are not asked about looking, in no mode."""
    cwd = str(same_project)

    assert reads_only(line, cwd=cwd, dirs=[cwd], home="/home/nobody")
    assert edits_only(line, cwd=cwd, dirs=[cwd], home="/home/nobody")
    for mode in ("default", "plan", "dontAsk", "acceptEdits"):
        assert decide("Bash", {"command": line}, rules=Rules(), mode=mode, cwd=cwd).behaviour == "allow"


def test_globs_are_read_as_the_files_they_stand_for(project: Path) -> None:
    """A file that is called like an option is an option to whoever writes `*`."""
    cwd = str(project)
    assert all(reads_only(line, cwd=cwd, dirs=[cwd], home="/h") for line in ("sort *", "cat ?", "ls sub/*/x"))

    (project / "--compress-program=sh").write_text("")

    assert not reads_only("sort *", cwd=cwd, dirs=[cwd], home="/h")
    assert reads_only("sort ./*", cwd=cwd, dirs=[cwd], home="/h")
    assert reads_only("find . -name '*'", cwd=cwd, dirs=[cwd], home="/h")


def test_links_that_lead_outside_are_followed(project: Path, tmp_path: Path) -> None:
    """What is read is where the link leads."""
    cwd = str(project)
    (tmp_path / "secret").write_text("x")
    (project / "link").symlink_to(tmp_path / "secret")
    (project / "door").symlink_to(tmp_path)
    (project / "inside").symlink_to("a")

    for line in ("cat link", "cat l*", "cat < link", "cat door/secret", "cd door && ls", "cd src && cat ../link"):
        assert not reads_only(line, cwd=cwd, dirs=[cwd], home="/h"), line
    assert not reads_only("cat door/../a", cwd=cwd, dirs=[cwd], home="/h")
    assert reads_only("cat inside", cwd=cwd, dirs=[cwd], home="/h")
    answer = decide("Read", {"file_path": f"{cwd}/link"}, rules=Rules(), read_only=True, cwd=cwd)
    assert (answer.behaviour, answer.reason_type) == ("ask", "workingDir")


def test_a_repository_that_was_put_together_by_hand_is_not_entered(project: Path) -> None:
    """Git takes `HEAD`, `objects` and `refs` for a repository and runs what its `config` says."""
    cwd = str(project)
    (project / "HEAD").write_text("ref: refs/heads/main\n")
    (project / "objects").mkdir()
    (project / "refs").mkdir()

    assert not reads_only("git status", cwd=cwd, dirs=[cwd], home="/h")
    (project / ".git").mkdir()
    assert reads_only("git status", cwd=cwd, dirs=[cwd], home="/h")


@pytest.mark.parametrize(
    "line", ["ls " + "$x " * 16_000, "cat " + "*a" * 20_000 + " /etc", "sort " + "-" * 60_000, "[" * 60_000]
)
def test_long_lines_are_answered_soon(line: str, project: Path) -> None:
    """Nothing here backtracks."""
    assert not reads_only(line, cwd=str(project), dirs=[str(project)], home="/h")
