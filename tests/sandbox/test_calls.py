"""System calls made by hand, races, and programs outside; and whether the attacks of all tables are real."""

from __future__ import annotations

import pytest

from tests.sandbox import arena, calls_table, commands_table, paths_table, processes_table, tables

pytestmark = tables.REAL_BASH


@pytest.mark.parametrize("programs", [calls_table.CALLS, calls_table.RACES], ids=["calls", "races"])
def test_no_system_call_changes_a_file_outside(programs: list[str]) -> None:
    """By any number, through any descriptor, and also where a thread swaps what the call is given."""
    tables.hold_writes("calls", calls_table.lines(programs))


def test_no_program_outside_is_reached() -> None:
    """Neither its limits and memory nor its terminal, sockets, keys and queues."""
    tables.hold_writes("processes", processes_table.lines(), processes_table.SETUP)


def test_the_attacks_are_real() -> None:
    """Bare, most of a sample has its effect: the tables test something."""
    bare = {"packages": False}
    sample = paths_table.lines()[::25]
    results = list(arena.tried({"line": line, **bare} for _, line in sample))
    rows = [(name, line) for _, name, line in commands_table.lines()[::25]]
    jobs = [{"line": line, "setup": commands_table.SETUP.get(name, ""), **bare} for name, line in rows]
    ran = [name in result["commands"] for (name, _), result in zip(rows, arena.tried(jobs), strict=True)]
    calls = list(arena.tried({"line": line, **bare} for line in calls_table.lines(calls_table.CALLS[::10])))
    noted = "for n in {1..50}; do [ -e $OUT/touched ] && break; sleep 0.1; done"  # the watcher may be slow to see it
    acts = [f"{line}; {noted}" for line in processes_table.LINES[::10]]
    beside = [{"line": line, "setup": processes_table.SETUP, **bare} for line in acts]
    touched = [bool(result["outside"]) for result in arena.tried(beside)]

    assert sum(bool(result["outside"]) for result in results) > len(sample) * 0.8
    assert sum(ran) > len(ran) * 0.7
    assert sum(bool(result["outside"]) for result in calls) > len(calls) * 0.7
    assert sum(touched) > len(touched) * 0.7
