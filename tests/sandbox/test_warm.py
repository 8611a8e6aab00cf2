"""Confined lines from a program that runs on: held as any other, without a new interpreter for each."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.guards.sandboxing import unavailable
from hookline.sandbox.policy import Policy
from hookline.sandbox.warm import WarmLine, WarmStarter
from tests.processes.service.conftest import until

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")


@pytest.fixture
def starter() -> Iterator[WarmStarter]:
    starter = WarmStarter()
    yield starter
    starter.close()


def start(starter: WarmStarter, folder: Path, line: str, **variables: str) -> WarmLine:
    with (folder / "output").open("ab") as output, Path(os.devnull).open("rb") as nothing:
        files = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}
        policy, env = Policy((str(folder / "project"),), block=("chmod *",)), {**os.environ, "WORD": "given"}
        env |= variables
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
    lines = [start(starter, folder, f"touch begun{number}; read -r x < pipe{number}; exit 5") for number in range(3)]
    groups = {os.getpgid(line.pid) for line in lines}
    until((folder / "project" / "begun0").exists)  # before that its supervisor is in the group, and nobody would tell
    os.killpg(lines[0].pid, signal.SIGKILL)

    assert groups == {line.pid for line in lines}
    assert lines[0].exit_code() == 137
    assert start(starter, folder, "echo a > pipe1; echo b > pipe2").exit_code() == 0
    assert [line.exit_code() for line in lines[1:]] == [5, 5]


def test_if_its_process_was_killed_another_one_is_started(starter: WarmStarter, folder: Path) -> None:
    start(starter, folder, "true").exit_code()
    assert starter.process is not None
    starter.process.kill()
    starter.process.wait()

    assert start(starter, folder, "exit 4").exit_code() == 4


def test_a_crew_that_outlives_the_process_that_forked_it_starts_the_line(starter: WarmStarter, folder: Path) -> None:
    line = start(starter, folder, "true")
    line.exit_code()
    assert starter.process is not None
    children = Path(f"/proc/{starter.process.pid}/task/{starter.process.pid}/children")
    until(lambda: {*children.read_text().split()} - {str(line.pid)} != set())  # the next crew
    starter.process.kill()
    starter.process.wait()

    assert start(starter, folder, "exit 4").exit_code() == 4


def test_a_line_has_the_descriptors_it_was_given_and_no_others(starter: WarmStarter, folder: Path) -> None:
    """Nothing of the crew that starts it, which would be a way out."""
    with (folder / "third").open("wb") as third:
        policy = Policy((str(folder / "project"),))
        with (folder / "output").open("wb") as output, Path(os.devnull).open("rb") as nothing:
            files = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno(), 5: third.fileno()}
            line = "ls /proc/$$/fd; echo told >&5"  # no pipe, whose ends bash may hold while the list is made
            starter.start(policy, ["bash", "-c", line], cwd="/", env=os.environ, files=files).exit_code()

    assert (folder / "output").read_text().split() == ["0", "1", "2", "5"]
    assert (folder / "third").read_text() == "told\n"


@pytest.mark.parametrize("victim", ["launcher", "supervisor", "command"])
def test_a_line_that_loses_one_of_its_crew_is_ended(starter: WarmStarter, folder: Path, victim: str) -> None:
    """Nothing goes on unwatched, sessions of its own included."""
    os.mkfifo(folder / "project" / "pipe")
    line = start(starter, folder, "setsid bash -c 'echo $$ $PPID; exec sleep 300' > pipe & sleep 300")
    with (folder / "project" / "pipe").open() as pipe:
        stray, command = pipe.readline().split()
    held = [os.pidfd_open(int(stray)), os.pidfd_open(int(command))]
    supervisor = children(line.pid)[0]
    os.kill({"launcher": line.pid, "supervisor": supervisor, "command": int(command)}[victim], signal.SIGKILL)

    code = line.exit_code()
    if victim == "command":  # what it left behind may go on, held as before; the group is how to end it
        os.kill(int(stray), signal.SIGKILL)
        os.killpg(line.pid, signal.SIGKILL)
    for pidfd in held:
        assert select.select([pidfd], [], [], 30)[0]
        os.close(pidfd)
    assert code == {"launcher": 137, "supervisor": 125, "command": 137}[victim]


def test_closing_does_not_wait_for_lines(starter: WarmStarter, folder: Path) -> None:
    """They go on, and end as any other."""
    os.mkfifo(folder / "project" / "pipe")
    line = start(starter, folder, "read -r x < pipe; exit 6")
    starter.close()

    (folder / "project" / "pipe").write_text("go on\n")
    assert line.exit_code() == 6


def test_a_crew_that_waits_ends_with_its_owner(starter: WarmStarter, folder: Path) -> None:
    """Also where the owner could not say so."""
    crew = next_crew(starter, ended(start(starter, folder, "true")))
    pidfds = [os.pidfd_open(pid) for pid in crew]
    starter.close()

    assert len(crew) == 2
    for pidfd in pidfds:
        assert select.select([pidfd], [], [], 30)[0]
        os.close(pidfd)


def test_a_line_goes_on_when_its_starter_is_closed(folder: Path) -> None:
    """Also where that is before the line could take its place among the others."""
    starters = [WarmStarter() for _ in range(20)]
    codes = []
    for starter in starters:
        next_crew(starter, ended(start(starter, folder, "true")))
        line = start(starter, folder, "exit 7")
        starter.close()
        codes.append(line.exit_code())

    assert codes == [7] * 20


@pytest.mark.parametrize("victim", [0, 1], ids=["launcher", "supervisor"])
def test_a_crew_that_was_killed_while_it_waited_is_replaced(starter: WarmStarter, folder: Path, victim: int) -> None:
    pid = next_crew(starter, ended(start(starter, folder, "true")))[victim]
    pidfd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([pidfd], [], [], 30)[0]
    os.close(pidfd)

    assert start(starter, folder, "touch ../outside; exit 4").exit_code() == 4
    assert not (folder / "outside").exists()


UNLIKE = {
    "no patterns": (Policy(()), "chmod 700 . 2>&1 | grep -c 'outside'", "1"),
    "no network": (Policy((), network="none"), "exec 3<>/dev/tcp/127.0.0.1/9; echo $?", "the network"),
    "no network, patterns": (Policy((), network="none", block=("id *",)), "id", "the pattern `id *`"),
    "hosts": (
        Policy((), hosts=("pypi.example",)),
        "getent hosts evil.example; getent hosts pypi.example",
        "198.18.1.0",
    ),
    "a loopback": (Policy((), network="loopback"), "cat /proc/net/dev | grep -c :", "1"),
    "reads": (Policy((), read=("/usr",)), "cat secret || echo kept", "kept"),
    "everything": (Policy(None, block=("id *",)), "echo > made && id", "the pattern `id *`"),
}


def test_after_two_lines_alike_the_next_one_takes_the_place_of_a_process_that_is_confined(
    starter: WarmStarter, folder: Path
) -> None:
    """Unless something else came or went meanwhile near a place that is hidden: on a busy machine, once in a while."""
    for _ in range(12):
        waiting = alike(starter, folder)
        start(starter, folder, "echo $$; touch ../outside made; exit 0").exit_code()

        said = (folder / "output").read_text()
        assert "hookline: refused to write" in said
        assert (folder / "project" / "made").exists()
        assert not (folder / "outside").exists()
        if said.splitlines()[0] == str(waiting):
            return
    pytest.fail("no line took the place of the process that waited")


def test_what_changed_while_the_process_waited_counts(starter: WarmStarter, folder: Path) -> None:
    """The folder is another one, and holds a secret; the old one is not the line's any more."""
    alike(starter, folder)
    (folder / "project").rename(folder / "old")
    (folder / "project").mkdir()
    (folder / "project" / ".env").write_text("told")
    start(starter, folder, "touch made; touch ../old/late; cat .env").exit_code()

    assert (folder / "project" / "made").exists()
    assert not (folder / "old" / "late").exists()
    said = (folder / "output").read_text()
    assert "it holds secrets" in said
    assert "told" not in said


def test_a_secret_that_came_while_the_process_waited_is_not_read(starter: WarmStarter, folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    alike(starter, folder, HOME=str(home))
    (home / ".netrc").write_text("told")
    start(starter, folder, "cat ~/.netrc; touch made", HOME=str(home)).exit_code()

    assert (folder / "project" / "made").exists()
    assert "told" not in (folder / "output").read_text()


def test_a_process_that_was_killed_while_it_waited_is_done_without(starter: WarmStarter, folder: Path) -> None:
    waiting = alike(starter, folder)
    os.kill(waiting, signal.SIGKILL)
    until(lambda: has_ended(waiting))  # what it is told before that is lost with it

    assert start(starter, folder, "touch ../outside; touch made; exit 4").exit_code() == 4
    assert (folder / "project" / "made").exists()
    assert not (folder / "outside").exists()


def test_a_line_that_cannot_be_understood_says_so_once(starter: WarmStarter, folder: Path) -> None:
    alike(starter, folder)
    with (folder / "output").open("wb") as output, Path(os.devnull).open("rb") as nothing:
        files = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}
        policy = Policy((str(folder / "missing"),))
        code = starter.start(policy, ["true"], cwd=str(folder), env=os.environ, files=files).exit_code()

    assert code == 64
    assert (folder / "output").read_text().count("does not exist") == 1
    assert start(starter, folder, "exit 4").exit_code() == 4


@pytest.mark.parametrize("kind", UNLIKE)
def test_a_line_unlike_those_that_its_crew_was_confined_for_is_held_to_its_own_policy(
    starter: WarmStarter, folder: Path, kind: str
) -> None:
    policy, line, expected = UNLIKE[kind]
    (folder / "secret").write_text("told")
    alike(starter, folder)
    with (folder / "output").open("wb") as output, Path(os.devnull).open("rb") as nothing:
        files = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}
        words = ["bash", "-c", f"{line}; touch project/made; : > ../outside"]
        starter.start(policy, words, cwd=str(folder), env=os.environ, files=files).exit_code()
    said = (folder / "output").read_text()

    assert expected in said
    assert "told" not in said
    assert (folder / "project" / "made").exists() == (policy.write is None)
    assert ("refused to write" in said) == (policy.write is not None)


@pytest.mark.parametrize("kind", UNLIKE)
def test_a_line_unlike_the_one_before_is_held_to_its_own_policy(starter: WarmStarter, folder: Path, kind: str) -> None:
    """What waits was made for another kind of line and, the second time, for this one."""
    policy, line, expected = UNLIKE[kind]
    (folder / "secret").write_text("told")
    before = ended(start(starter, folder, "true"))
    for _ in range(2):
        next_crew(starter, before)
        with (folder / "output").open("wb") as output, Path(os.devnull).open("rb") as nothing:
            files = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno(), 7: output.fileno()}
            words = ["bash", "-c", f"{line}; echo end >&7; : > ../outside"]
            before = ended(starter.start(policy, words, cwd=str(folder), env=os.environ, files=files))
        said = (folder / "output").read_text()

        assert expected in said
        assert "end\n" in said
        assert "told" not in said
        assert ("refused to write" in said) == (policy.write is not None)


def test_a_line_s_descriptors_are_its_streams_and_a_few_more(starter: WarmStarter, folder: Path) -> None:
    for files in ({0: 0, 1: 1, 2: 2, 10: 2}, {0: 0, 1: 1}):
        with pytest.raises(ValueError, match="0, 1, 2 and numbers below 10"):
            starter.start(Policy(()), ["true"], cwd="/", env={}, files=files)


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or is only kept until its parent asks for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def ended(line: WarmLine) -> WarmLine:
    line.exit_code()
    return line


def alike(starter: WarmStarter, folder: Path, **variables: str) -> int:
    """The process that waits to turn into the command of the next line, after two that were alike.

    On a busy machine a crew may be made before the line is noted: then the one after it is the first that knows.
    """
    next_crew(starter, ended(start(starter, folder, "true", **variables)))
    for _ in range(12):
        _, supervisor = next_crew(starter, ended(start(starter, folder, "true", **variables)))
        with contextlib.suppress(AssertionError):
            until(lambda: children(supervisor) != [], seconds=5)  # noqa: B023 - asked before the next one is looked for
            return children(supervisor)[0]
    raise AssertionError("no crew was confined ahead")


def next_crew(starter: WarmStarter, last: WarmLine) -> list[int]:
    """The two processes that wait for the next line, once they are there and those of the last one are not."""
    assert starter.process is not None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for launcher in set(children(starter.process.pid)) - {last.pid}:
            for supervisor in children(launcher):
                return [launcher, supervisor]
        os.sched_yield()
    raise AssertionError("no crew waits")
