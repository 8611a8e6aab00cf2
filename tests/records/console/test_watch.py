"""`hookline watch`: a live view for a terminal, which obeys nothing that an agent wrote."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookline.records.console.records import EventRecord, decode
from hookline.records.console.tail import Tail
from hookline.records.console.watch import WatchScreen, columns, fit
from tests.records.console.place import Log

WATCH = [sys.executable, "-m", "hookline.cli.main", "watch"]


def screen() -> WatchScreen:
    return WatchScreen(lambda text, colour: text, lambda word: "dim")


def records(log: Log) -> list[EventRecord]:
    return [record for line in log.path.read_bytes().splitlines() if (record := decode(line))]


def test_every_line_fits_the_window(log: Log) -> None:
    """At 80 columns and at more, in as many lines as there are, also for wide characters."""
    log.denied("rm -rf / " + "x" * 300, "not that")
    log.bash("echo 日本語" * 40)
    log.bash("ls", hooks=({"hook": "slow", "status": "timeout", "ms": 5000.0},))
    shown = screen()
    shown.add(records(log), 0.0)

    for width, height in ((80, 24), (132, 40), (80, 5)):
        lines = shown.lines(width, height, 0.0, "1 log")
        assert len(lines) == height
        assert max(columns(line) for line in lines) <= width


def test_it_says_what_happened_and_which_hooks_are_slow(log: Log) -> None:
    """Counts at the top, the newest events, the slowest hooks at the bottom."""
    log.denied("rm -rf /", "not that")
    log.bash("make", hooks=({"hook": "slow", "status": "timeout", "ms": 5000.0},))
    shown = screen()
    shown.add(records(log), 0.0)

    lines = shown.lines(100, 10, 0.0)

    assert "2 events  1 denied  0 asked  1 failed" in lines[0]
    assert "DENY       Bash rm -rf /  ← guard: not that" in lines[2]
    assert "Bash make  ✗ slow" in lines[3]
    assert lines[-1].startswith("slowest hooks (p95): slow")


def test_nothing_that_an_agent_wrote_steers_the_terminal(log: Log) -> None:
    """Escape codes, direction overrides and line breaks are shown."""
    hostile = "\x1b]0;owned\x07\x1b[2J\u202eevil\nDENY fake\r"
    log.add(tool=hostile, input={"x": hostile}, by=hostile, reasons=[hostile], agent=hostile, agent_type=hostile,
            hooks=({"hook": hostile, "status": "failed", "ms": 1.0},))  # fmt: skip
    shown = screen()
    shown.add(records(log), 0.0)

    said = "\n".join(shown.lines(300, 8, 0.0))

    assert not set("\x1b\x07\r\u202e") & set(said)
    assert said.count("\n") == 7


@pytest.mark.parametrize("text, width", [("short", 10), ("日本語日本語", 5), ("e\u0301" * 20, 6), ("x" * 50, 20)])
def test_a_text_takes_exactly_the_columns_it_is_given(text: str, width: int) -> None:
    """Cut or filled."""
    assert columns(fit(text, width)) == width
    assert columns(fit(text, width, right=True)) == width


def test_a_tail_reads_on_across_rotations_and_in_new_logs(tmp_path: Path) -> None:
    """Nothing twice, nothing lost."""
    log = Log(tmp_path / "audit.jsonl", max_bytes=700)
    log.bash("before")
    tail = Tail([tmp_path])
    seen = [record.about for record in tail.read()]
    for number in range(10):
        log.bash(f"echo {number}")
        seen += [record.about for record in tail.read()]

    assert seen == ["before", *(f"echo {number}" for number in range(10))]


class Terminal:
    """`hookline watch` in a terminal of 80 columns."""

    def __init__(self, path: Path, home: Path) -> None:
        self.fd, there = pty.openpty()
        env = {
            **os.environ,
            "TERM": "xterm",
            "COLUMNS": "80",
            "LINES": "24",
            "HOME": str(home),
            "HOOKLINE_SERVICE": "0",
        }
        self.process = subprocess.Popen(
            [*WATCH, str(path)], stdin=there, stdout=there, stderr=there, env=env, start_new_session=True
        )
        os.close(there)
        self.said = b""

    def wait_for(self, text: bytes) -> None:
        end = time.monotonic() + 60
        while text not in self.said:
            assert time.monotonic() < end, self.said
            if select.select([self.fd], [], [], 1)[0]:
                self.said += os.read(self.fd, 1 << 16)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


@pytest.fixture
def terminal(log: Log, tmp_path: Path) -> Iterator[Callable[[], Terminal]]:
    made: list[Terminal] = []

    def begin() -> Terminal:
        made.append(Terminal(log.path, tmp_path))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def test_a_terminal_shows_events_as_they_are_written_and_comes_back(log: Log, terminal: Callable[[], Terminal]) -> None:
    """The other screen while it runs; Ctrl-C leaves it with exit code 0."""
    log.bash("before")
    shown = terminal()
    shown.wait_for(b"before")

    log.denied("rm -rf /", "not that")
    shown.wait_for(b"rm -rf /")
    shown.process.send_signal(signal.SIGINT)
    shown.wait_for(b"\x1b[?1049l")

    assert shown.process.wait(60) == 0
    assert b"\x1b[?1049h" in shown.said


def test_in_a_pipe_it_prints_a_line_per_event(log: Log, tmp_path: Path) -> None:
    """Plain, for grep; and Ctrl-C is no error."""
    log.bash("first")
    process = subprocess.Popen([*WATCH, str(log.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = process.stdout.readline()
    log.denied("second")
    second = process.stdout.readline()
    process.send_signal(signal.SIGINT)

    assert process.wait(60) == 0
    process.stdout.close()
    assert "PASS       Bash first" in first
    assert "DENY       Bash second  ← guard: no" in second
