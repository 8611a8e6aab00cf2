"""A part of every table by a cold start of `hookline confine`: it holds what a crew holds that was forked ahead."""

from __future__ import annotations

import pytest

from tests.confine import arena, calls_table, commands_table, ordinary_table, paths_table, processes_table, tables

pytestmark = tables.REAL_BASH

PARTS = {
    "paths": ([line for _, line in paths_table.lines()[::23]], ""),
    "calls": (calls_table.lines(calls_table.CALLS[::4]), ""),
    "races": (calls_table.lines(calls_table.RACES[::4]), ""),
    "processes": (processes_table.lines()[::4], processes_table.SETUP),
}


@pytest.mark.parametrize("kind", [*commands_table.FORMS, *commands_table.EXTRA])
def test_no_way_to_run_a_blocked_command_has_an_effect(kind: str) -> None:
    """However it is spelt, wrapped, copied or handed on."""
    tables.hold_commands(kind, every=13, by=arena.HOOKLINE)


@pytest.mark.parametrize("name", PARTS)
def test_nothing_outside_is_changed(name: str) -> None:
    """However the place is spelt, whoever writes, whatever is changed."""
    lines, setup = PARTS[name]
    tables.hold_writes(name, lines, setup, by=arena.HOOKLINE)


def test_ordinary_lines_end_confined_as_they_do_bare() -> None:
    """The same exit code, line by line."""
    tables.end_alike("ordinary", ordinary_table.lines()[::11], ordinary_table.SETUP, by=arena.HOOKLINE)
