"""A part of every table run by an ordinary user, with namespaces and without: root of a namespace is refused most."""

from __future__ import annotations

import pytest

from tests.sandbox import calls_table, internet, paths_table, processes_table, programs_table, tables
from tests.sandbox.arena import LAUNCH
from tests.sandbox.test_users import NOBODY, PYTHON, cannot_be_tried

pytestmark = [
    *tables.REAL_BASH,
    pytest.mark.skipif(bool(cannot_be_tried()), reason=cannot_be_tried() or "another user can be tried"),
]

PARTS = {
    "paths": ([line for _, line in paths_table.lines()][::24], ""),
    "calls": (calls_table.lines(calls_table.CALLS[::4]), ""),
    "races": (calls_table.lines(calls_table.RACES[::4]), ""),
    "programs": (programs_table.lines()[::9], ""),
    "processes": (processes_table.lines()[::4], processes_table.SETUP),
}
"""Of every table one row in so many."""
COLD = [PYTHON, "-I", "-S", str(LAUNCH)]
AROUND = {"namespaces": COLD, "no namespaces": [PYTHON, internet.NO_NAMESPACES, *COLD]}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", PARTS)
def test_nothing_outside_is_changed(name: str, around: str) -> None:
    """Whose own the files outside are."""
    lines, setup = PARTS[name]
    tables.hold_writes(name, lines, setup, by=AROUND[around], packages=True, user=NOBODY)


@pytest.mark.parametrize("around", AROUND)
def test_no_blocked_command_runs(around: str) -> None:
    """However it is spelt, wrapped, copied or handed on."""
    tables.hold_commands("", every=29, by=AROUND[around], user=NOBODY)
