"""Work in a process of its own: whoever waits for it always hears something, in time."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hookline.processes import watch
from hookline.processes.watch import NoAnswer, answer_in_time
from tests.agent.processes import alive

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
Deliver = Callable[[bytes], None]


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


def test_an_answer_arrives_whole() -> None:
    """Also one that is larger than a pipe holds."""
    assert answer_in_time(lambda deliver: deliver(b"yes"), soon()) == b"yes"
    assert answer_in_time(lambda deliver: deliver(b"x" * 1_000_000), soon()) == b"x" * 1_000_000
    assert answer_in_time(lambda deliver: deliver(b""), soon()) == b""


def exits(deliver: Deliver) -> None:
    os._exit(0)


def raises(deliver: Deliver) -> None:
    raise ValueError("boom")


def dies(deliver: Deliver) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def forks(deliver: Deliver) -> None:
    """Leaves a process behind that holds the pipe open."""
    if os.fork() == 0:
        time.sleep(30)
    os._exit(7)


def closes(deliver: Deliver) -> None:
    """Closes all its files and goes on."""
    os.closerange(0, 256)
    time.sleep(600)


@pytest.mark.parametrize("work, told", [(exits, "exit code 0"), (raises, "exit code 1"), (dies, "SIGKILL"),
                                        (forks, "exit code 7"), (closes, "closed the pipe")])  # fmt: skip
def test_work_that_ends_without_an_answer_is_told(work: Callable[[Deliver], None], told: str) -> None:
    """However it ends: it is not waited for."""
    with pytest.raises(NoAnswer, match=told):
        answer_in_time(work, soon())


def test_work_that_holds_the_interpreter_is_ended_in_time() -> None:
    """No thread could run here: the regular expression holds the lock for ages."""
    import re

    with pytest.raises(NoAnswer, match="in time"):
        answer_in_time(lambda deliver: deliver(str(re.match(r"(a+)+$", "a" * 64 + "b")).encode()), soon(0.5))


def test_what_the_work_has_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that a hanging hook has started does not outlive it."""
    import subprocess

    note = tmp_path / "pid"

    def clock() -> float:
        """Its time is over once the program runs, however long that takes."""
        return time.monotonic() + (600 if note.exists() and note.read_text() else 0)

    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=clock, sleep=time.sleep))

    def work(deliver: Deliver) -> None:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        note.write_text(str(child.pid))
        child.wait()

    with pytest.raises(NoAnswer):
        answer_in_time(work, soon())

    pid = int(note.read_text())
    until = soon()
    while alive(pid):
        assert time.monotonic() < until
        time.sleep(0.01)
