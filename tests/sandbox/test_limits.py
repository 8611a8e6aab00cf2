"""`--seconds`, `--cpu`, `--memory`, `--processes`: what a whole line may use."""

from __future__ import annotations

import subprocess
import time

import pytest

from hookline.sandbox.main import UsageError, parse
from hookline.sandbox.policy import Policy
from tests.sandbox import arena

pytestmark = pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried")

SPIN = "while :; do :; done"
ENDED = [
    (["--seconds", "0.2"], "sleep 60 & sleep 60", "it has taken 0.2 seconds (--seconds)"),
    (["--cpu", "0.3"], f"({SPIN}) & {SPIN}", "it has used 0.3 seconds of processor time (--cpu)"),
    (["--cpu", "0.3"], "while :; do /bin/true; done", "it has used 0.3 seconds of processor time (--cpu)"),
    (
        ["--memory", "150M"],
        "for i in 1 2 3; do python3 -c 'import time; x = bytearray(70 << 20); time.sleep(60)' & done; wait",
        "it has used 157286400 bytes of memory (--memory)",
    ),
]


def confine(flags: list[str], line: str) -> subprocess.CompletedProcess[str]:
    command = [*arena.HOOKLINE, *flags, "--", "bash", "-c", line]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("flags, line, said", ENDED)
def test_a_line_that_reaches_a_limit_is_ended_with_all_that_it_started(flags: list[str], line: str, said: str) -> None:
    """Its processes are added up, those that have ended included; it is said which limit it was."""
    begun = time.monotonic()
    done = confine(flags, line)

    assert (done.returncode, done.stderr.splitlines()[-1]) == (124, f"hookline confine: the line was ended: {said}")
    assert time.monotonic() - begun < 30


def test_one_process_that_wants_too_much_memory_is_told_so() -> None:
    """Between two looks the kernel holds each process by itself."""
    done = confine(["--memory", "150M"], "python3 -c 'bytearray(1 << 30)'; echo $?")

    assert (done.stdout, "MemoryError" in done.stderr) == ("1\n", True)


def test_a_line_has_no_more_processes_than_it_may() -> None:
    """A fork that is one too many fails like any other, and the line goes on; threads are not counted."""
    fork = (
        "import os, threading\nend, mine = os.pipe()\n"
        "threading.Thread(target=print, args=('thread',)).start()\nmade = 0\ntry:\n"
        " for _ in range(50):\n  if os.fork() == 0: os.close(mine); os.read(end, 1); os._exit(0)\n  made += 1\n"
        "except BlockingIOError: print('made', made)"
    )
    done = confine(["--processes", "10"], f'exec python3 -c "{fork}"')

    assert (done.returncode, done.stdout) == (0, "thread\nmade 9\n")


def test_limits_that_are_not_numbers_run_nothing() -> None:
    """One line says what to write instead; two policies keep the lower of two limits."""
    for flag, text in (
        ("--cpu", "x"),
        ("--memory", "12Q"),
        ("--seconds", "0"),
        ("--processes", "-1"),
        ("--cpu", "nan"),
    ):
        with pytest.raises(UsageError, match=rf"{flag}: expected a number above 0, got `{text}`; write one such as"):
            parse([flag, text, "--", "true"])
    policy = parse(["--memory", "1.5G", "--seconds=9", "--", "true"])[0]
    assert policy.limits == {"memory": 1.5 * (1 << 30), "seconds": 9}
    assert parse([*policy.arguments(), "--", "true"])[0] == policy
    assert policy.intersected(Policy(limits={"seconds": 3, "cpu": 1})).limits == {
        "memory": 1.5 * (1 << 30),
        "seconds": 3,
        "cpu": 1,
    }
