"""The table of paths: what else changes a file outside, and programs that write one on the side."""

from __future__ import annotations

import pytest

from tests.sandbox import paths_table, programs_table, tables

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
