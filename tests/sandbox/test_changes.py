"""The table of paths: what else changes a file outside, and programs that write one on the side."""

from __future__ import annotations

import shlex

import pytest

from tests.sandbox import arena, paths_table, programs_table, tables

pytestmark = tables.REAL_BASH


CHANGES = {
    "changes": [line for kind, line in paths_table.lines() if kind.startswith("change, ")],
    "tricks": paths_table.TRICKS,
    "programs": programs_table.lines(),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_no_way_to_change_something_outside_has_an_effect(kind: str) -> None:
    """Whatever is changed, by whichever program."""
    tables.hold_writes(kind, CHANGES[kind], packages=kind == "programs")


LOCKS = """
import fcntl, os, sys
def attempt(path, mode, *how):
    with open(path, mode) as file:
        try: (fcntl.flock if len(how) == 1 else fcntl.fcntl)(file, *how); return "taken"
        except OSError as error: return type(error).__name__
out = os.environ["OUT"] + "/file"
print(attempt(out, "r", fcntl.LOCK_EX | fcntl.LOCK_NB), attempt(out, "r", fcntl.F_SETLEASE, fcntl.F_RDLCK))
open("own", "w").close()
first = open("own"); fcntl.flock(first, fcntl.LOCK_EX)
print(attempt("own", "r", fcntl.LOCK_SH | fcntl.LOCK_NB))
sys.stdout.flush()
if os.fork() == 0: fcntl.flock(open("own"), fcntl.LOCK_EX); print("waited", flush=True); os._exit(0)
fcntl.flock(first, fcntl.LOCK_UN); os.wait()
sys.stdout.flush()
os.system("flock own echo held; exec 9< $OUT/file; flock 9; flock -n $OUT/file echo seems")
"""


def test_locks_and_leases_keep_no_program_outside_waiting() -> None:
    """A lock outside seems to be taken; inside it is, and is waited for."""
    job = {"line": f"python3 -c {shlex.quote(LOCKS)}", "prefix": arena.confined(extra=["--show", "/tmp/arena/outside"])}
    [result] = arena.tried([job])

    assert result["output"].split() == ["taken", "PermissionError", "BlockingIOError", "waited", "held", "seems"]


PROCESSORS = """
import os, sys, threading
own = os.sched_getaffinity(0)
def make(first):
    for number in range(first, first + 300):
        os.close(os.open(f"made{number}", os.O_CREAT | os.O_WRONLY))
        if number % 25 == 0 and os.fork() == 0: os._exit(os.sched_getaffinity(0) != wanted)
wanted = own
make(0)
seen = {os.wait()[1] for _ in range(12)}
wanted = {min(own)}
os.sched_setaffinity(0, wanted)
make(300)
seen |= {os.wait()[1] for _ in range(12)}
names = {os.path.getsize(f"made{number}") for number in range(600)}
print(seen, names, os.sched_getaffinity(0) == wanted)
"""


def test_a_line_that_opens_many_files_keeps_its_processors() -> None:
    """For a call it may be kept to one of them; neither its threads nor what they start ever see that."""
    [result] = arena.tried([{"line": f"python3 -c {shlex.quote(PROCESSORS)}", "prefix": arena.confined()}])

    assert result["output"] == "{0} {0} True\n"
