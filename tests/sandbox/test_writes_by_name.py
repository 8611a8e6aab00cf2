"""The table of paths: every writer on places outside that are named plainly."""

from __future__ import annotations

import pytest

from tests.sandbox import paths_table, tables

pytestmark = tables.REAL_BASH


_HALF = len(paths_table.TARGETS) // 2


@pytest.mark.parametrize("target", [*paths_table.TARGETS][:_HALF])
def test_no_way_to_write_outside_has_an_effect(target: str) -> None:
    """However the place is spelt, whoever writes."""
    kind = f"write, {target}"
    tables.hold_writes(kind, [line for each, line in paths_table.lines() if each == kind])
