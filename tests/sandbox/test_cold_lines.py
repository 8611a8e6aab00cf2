"""A part of every table by a cold start of `hookline confine`: it holds what a crew holds that was forked ahead."""

from __future__ import annotations

import pytest

from hookline.sandbox import exec_policy
from tests.sandbox import arena, calls_table, commands_table, ordinary_table, paths_table, processes_table, tables

pytestmark = tables.REAL_BASH

EVERY = 26
"""One row in so many of the long tables: of each kind at least one, and of the kinds of places each time others."""
PLACES: dict[str, list[str]] = {}
for kind, line in paths_table.lines():
    PLACES.setdefault(kind, []).append(line)
PARTS = {
    "paths": ([line for at, lines in enumerate(PLACES.values()) for line in lines[at::EVERY]], ""),
    "calls": (calls_table.lines(calls_table.CALLS[::8]), ""),
    "races": (calls_table.lines(calls_table.RACES[::8]), ""),
    "processes": (processes_table.lines()[::8], processes_table.SETUP),
}


@pytest.mark.parametrize("kind", [*commands_table.FORMS, *commands_table.EXTRA])
def test_no_way_to_run_a_blocked_command_has_an_effect(kind: str) -> None:
    """However it is spelt, wrapped, copied or handed on."""
    tables.hold_commands(kind, every=EVERY, by=arena.HOOKLINE)


@pytest.mark.parametrize("name", PARTS)
def test_nothing_outside_is_changed(name: str) -> None:
    """However the place is spelt, whoever writes, whatever is changed."""
    lines, setup = PARTS[name]
    tables.hold_writes(name, lines, setup, by=arena.HOOKLINE)


def test_every_kind_of_place_is_among_them() -> None:
    """However many rows it has."""
    assert all(set(lines) & set(PARTS["paths"][0]) for lines in PLACES.values())


def test_ordinary_lines_end_confined_as_they_do_bare() -> None:
    """The same exit code, line by line."""
    tables.end_alike("ordinary", ordinary_table.lines()[::EVERY], ordinary_table.SETUP, by=arena.HOOKLINE)


def test_a_line_may_start_more_programs_than_the_supervisor_notes() -> None:
    """Each is judged, and none is lost."""
    line = f"for i in {{1..{exec_policy._MOST_NOTED + 1}}}; do /bin/true; done; echo $?"
    [result] = arena.tried([{"line": line, "seconds": 240, "prefix": arena.confined(block=["rm *"])}])

    assert result["output"].splitlines()[0] == "0"
