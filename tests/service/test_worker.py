"""Getting ready: what a worker's processes do before their event, and when they may begin it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.service import client, event, frames
from hookline.service.pool import Route
from hookline.service.stamps import AT_A_TIME, Inspection, Stamps, stamp

REHEARSED = """
import os, sys
from hookline.cli.main import main
from hookline.service import worker
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
    client.send_body(theirs, ["guard"], [b"PATH=/bin"], fds)
    with theirs, ours:
        yield theirs, ours, fds
    for fd in fds:
        os.close(fd)


@pytest.mark.skipif(sys.platform != "linux", reason="memfd_create")
@pytest.mark.parametrize("said, frames_sent", [(frames.GO, ["s", "e"]), (b"", []), (b"?", [])])
def test_an_event_begins_when_the_service_says_so(
    visit: tuple[socket.socket, socket.socket, list[int]], said: bytes, frames_sent: list[str]
) -> None:
    """Files are compared while its process gets ready; if one has changed, or the service is gone, nothing is run."""
    theirs, ours, fds = visit
    inlet, outlet = os.pipe()
    if os.fork() == 0:
        os.close(outlet)
        event.answer(ours, inlet, lambda words: os.write(1, b"ran") * 0, lambda: None)
    ours.close()
    os.close(inlet)
    os.write(outlet, said)
    os.close(outlet)
    heard = b"".join(iter(lambda: theirs.recv(4096), b""))
    os.wait()

    assert [chr(heard[at]) for at in (0, 9) if at < len(heard)] == frames_sent
    assert os.pread(fds[1], 10, 0) == (b"ran" if frames_sent else b"")


def test_files_are_compared_a_few_at_a_time(tmp_path: Path) -> None:
    """Between two steps something else can be done; a file that changes meanwhile is still seen."""
    files = [tmp_path / str(number) for number in range(2 * AT_A_TIME + 1)]
    for file in files:
        file.touch()
    stamps = Stamps({str(file): stamp(str(file)) for file in files}, {})
    inspection = Inspection(stamps.inspect())

    assert [inspection.step(), inspection.step()] == [True, True]
    files[-1].write_text("new")
    assert [inspection.step(), inspection.result(), stamps.fresh()] == [False, False, False]


@pytest.mark.parametrize("utf8_mode", ["0", "1"])
def test_a_worker_is_chosen_by_what_an_interpreter_reads_at_its_start(utf8_mode: str) -> None:
    """Other variables do not matter, nor the one that Python sets for itself where there is no locale (PEP 538)."""
    environ = [b"PYTHONPATH=/x", b"LC_CTYPE=C.UTF-8", b"SECRET=1", b"HOME=/h"]
    texts = [b"python", b"/home", b"flags", utf8_mode.encode(), b"/cwd", *frames.counted(["guard", "paths"])]
    coerced = [] if utf8_mode == "1" else [b"LC_CTYPE=C.UTF-8"]

    assert Route(frames.join(*texts, *environ)).startup == (b"HOME=/h", *coerced, b"PYTHONPATH=/x")
