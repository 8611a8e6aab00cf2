"""Getting ready: what a worker's processes do before their event, and when they may begin it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hookline.core import template
from hookline.processes.service import client, frames, worker
from hookline.processes.service.pool import Route
from tests.processes.service.conftest import Desk, reason, until
from tests.processes.service.conftest import event as bash_call

REHEARSED = """
import os, sys
from hookline.cli.main import main
from hookline.processes.service import worker
os.environ["XDG_STATE_HOME"] = os.devnull
def state():
    streams = sys.stdin, sys.stdout, sys.stderr
    return streams, dict(os.environ), os.getcwd(), sorted(os.listdir("/proc/self/fd"))
def run(words):
    asked.append((words, sys.stdin.buffer.read(), os.environ["HOOKLINE_REHEARSAL_1"]))
    return main(words)
asked, before = [], state()
worker.rehearse(run, *worker.REHEARSALS)
assert [words for words, *_ in asked] == list(worker.REHEARSALS)
assert {text for _, text, _ in asked} == {worker.EVENT}
sys.exit(0 if state() == before else "something changed")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are listed in /proc")
def test_a_rehearsal_leaves_no_trace(tmp_path: Path) -> None:
    """It goes the way of a client's event; environment, folder, streams and descriptors are as they were."""
    done = subprocess.run([sys.executable, "-c", REHEARSED], cwd=tmp_path, check=False)

    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def visit() -> Iterator[tuple[socket.socket, socket.socket, list[int]]]:
    """Both ends of a connection on which an event was sent, and the files that its output goes to."""
    theirs, ours = socket.socketpair()
    fds = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    client.send_body(theirs, ["guard", "secrets"], [b"PATH=/bin"], fds)
    with theirs, ours:
        yield theirs, ours, fds
    for fd in fds:
        os.close(fd)


@pytest.mark.parametrize("options", ["", "-X utf8", "-I -X utf8"])
def test_a_worker_is_chosen_by_what_an_interpreter_reads_at_its_start(options: str) -> None:
    """Other variables do not matter, nor the one that Python sets for itself where there is no locale (PEP 538)."""
    environ = [b"PYTHONPATH=/x", b"LC_CTYPE=C.UTF-8", b"SECRET=1", b"HOME=/h"]
    texts = [b"python", b"/home", b"flags", options.encode(), b"/cwd", *frames.counted(["guard", "paths"])]
    coerced = [] if options else [b"LC_CTYPE=C.UTF-8"]

    assert Route(b"\0".join([*texts, *environ])).startup == (b"HOME=/h", *coerced, b"PYTHONPATH=/x")


LEAVES = {
    "nothing": ("pass", True),
    "a module": ("import this_was_not_there", False),
    "a thread": ("threading.Thread(target=threading.Event().wait, daemon=True).start()", False),
    "a child": ("os.fork() or os._exit(0)", False),
    "an exit code": ("return 1", False),
    "a warning": ("print('once a process', file=sys.stderr)", False),
}


@pytest.mark.skipif(sys.platform != "linux", reason="memfd_create")
@pytest.mark.parametrize("size", [0, worker.LARGEST_EVENT + 1])
@pytest.mark.parametrize("line, stays", LEAVES.values(), ids=LEAVES)
def test_a_process_that_is_not_as_before_takes_no_other_event(
    tmp_path: Path, line: str, stays: bool, size: int
) -> None:
    """Whatever an event leaves in memory, the next one does not meet it, nor what a large one took."""
    (tmp_path / "this_was_not_there.py").touch()
    code = STAYS.replace("LINE", line)
    done = subprocess.run(
        [sys.executable, "-c", code, str(size)], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("stayed" if stays and not size else "", "")


STAYS = """
import os, socket, sys, threading
from hookline.core import template
from hookline.processes.service import client, worker
def run(words):
    LINE
    return 0
os.environ["XDG_STATE_HOME"] = os.devnull
said = os.dup(1)
theirs, ours = socket.socketpair()
fds = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
os.ftruncate(fds[0], int(sys.argv[1]))
client.send_body(theirs, ["guard", "secrets"], [*map(b"=".join, os.environb.items())], fds)
worker.Spare(template.Template(socket.socketpair()[0]), os.memfd_create("seats"), run).answer(ours)
os.write(said, b"stayed")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memfd_create")
@pytest.mark.parametrize("left", [False, True])
def test_a_process_whose_client_has_left_does_not_stay(
    visit: tuple[socket.socket, socket.socket, list[int]], left: bool
) -> None:
    """Its worker may be about to end it for that, and must not meet another event there."""
    theirs, ours, _ = visit
    if (pid := os.fork()) == 0:
        try:
            theirs.close()
            forks = template.Template(socket.socketpair()[0])
            spare = worker.Spare(forks, os.memfd_create("slots"), lambda _: left_meanwhile(ours) if left else 0)
            spare.answer(ours)
            os._exit(7)
        finally:
            os._exit(8)
    ours.close()
    heard = theirs.recv(9)
    if left:
        theirs.close()
    status = os.waitpid(pid, 0)[1]

    assert heard[:1] == frames.STARTED
    assert os.waitstatus_to_exitcode(status) == (0 if left else 7)


def left_meanwhile(connection: socket.socket) -> int:
    """Run until the client has gone."""
    select.select([connection], [], [])
    return 0


def children(desk: Desk) -> list[int]:
    """The processes of the service's only worker."""
    [worker] = desk.status()["workers"]
    return [child.pid for child in psutil.Process(worker["pid"]).children()]


def test_guards_are_answered_by_a_process_that_stays(desk: Desk) -> None:
    """Forking, and getting ready, for every event costs the agent more than judging it."""
    desk.warm()
    until(lambda: children(desk))
    before = children(desk)
    for _ in range(3):
        assert "rm -rf" in reason(desk.guard())

    assert set(before) <= set(children(desk))  # an event that takes long has another one forked beside it


def test_hooks_of_the_user_have_a_process_of_their_own(desk: Desk) -> None:
    """One event each, also where guards were answered before, and also those that a fleet has put beside our guards."""
    (desk.project / "hooks.py").write_text("from hookline import Hooks\nhooks = Hooks()\n")
    pipe = ("pipe", "--hooks", "hooks.py")
    fleet = desk.base / "home" / ".local" / "state" / "hookline" / "fleet"
    desk.warm()
    until(lambda: children(desk))
    first = children(desk)
    for _ in first:  # two, if the event before took long
        desk.run(*pipe, stdin=bash_call(command="ls"))
    until(lambda: children(desk) and not set(children(desk)) & set(first))
    second = children(desk)
    fleet.mkdir(parents=True)
    (fleet / "machine.json").write_text("{}")
    desk.guard()

    until(lambda: children(desk) and not set(children(desk)) & set(second))


def test_many_at_once_leave_few_processes_waiting(desk: Desk) -> None:
    """Those that are not needed end."""
    desk.warm()
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: reason(desk.guard()), range(40)))

    assert all("rm -rf" in one for one in found)
    until(lambda: 0 < len(children(desk)) <= worker.MAX_IDLE)


CIRCUMSTANCES: tuple[tuple[tuple[str, ...], str, dict[str, str]], ...] = (
    (("paths", "--root", "{base}/proj", "--also", "{base}/t1"), "touch {base}/t1/x", {"TMPDIR": "{base}/t2"}),
    (("paths", "--root", "{base}/proj", "--also", "{base}/t2"), "touch {base}/t1/x", {"TMPDIR": "{base}/t1"}),
    (("paths", "--root", "{base}/proj", "--also", "{base}/t2"), "touch {base}/t2/x", {"TMPDIR": "{base}/t1"}),
    (("paths",), "touch {base}/t1/x", {}),
    (("paths",), "touch {base}/t1/x", {"CLAUDE_PROJECT_DIR": "{base}/t1"}),
    (("paths",), "touch x", {}),
    (("commands", "--block", "rm *"), "rm x", {}),
    (("commands", "--block", "rm *"), "rm x", {"HOOKLINE_ENABLED": "0"}),
    (("commands", "--block", "rm *"), "rm x", {"HOOKLINE_ENABLED": "0"}),
    (("commands", "--block", "rm *"), "rm x", {}),
    (("commands",), "rm x", {}),
    (("commands", "--block"), "rm x", {}),
    (("secrets",), "echo AKIA" + "Q3EGRIZMTDR7NBXK", {}),
    (("approvals", "--allow", "ls"), "ls", {}),
)


def test_what_was_answered_before_changes_no_answer(desk: Desk) -> None:
    """Guards answer in the service, one after the other, what each answers in a process of its own."""
    for name in ("t1", "t2"):
        (desk.base / name).mkdir()
    desk.warm()

    def answers(**env: str) -> list[tuple[str, str, int]]:
        found = []
        for words, line, more in CIRCUMSTANCES:
            here = {key: value.format(base=desk.base) for key, value in more.items()}
            guard = [word.format(base=desk.base) for word in words]
            done = desk.run("guard", *guard, stdin=bash_call(command=line.format(base=desk.base)), **here | env)
            found.append((done.stdout, done.stderr, done.returncode))
        return found

    alone = answers(HOOKLINE_SERVICE="0")
    before = desk.events()

    assert [answers(), answers()] == [alone, alone]
    assert desk.events() == before + 2 * len(CIRCUMSTANCES)
    assert len(set(alone)) > 5
    assert alone[0] == alone[2] != alone[1]


def test_a_killed_worker_leaves_nobody_waiting(desk: Desk) -> None:
    """The service notices at once, also where a process that the worker forked still holds their connection."""
    desk.warm()
    until(lambda: children(desk))
    [worker], waiting = desk.status()["workers"], children(desk)
    os.kill(worker["pid"], signal.SIGKILL)

    until(lambda: not any(map(psutil.pid_exists, waiting)))
    until(lambda: desk.status()["workers"] == [])
    desk.warm()
