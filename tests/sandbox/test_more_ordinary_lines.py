"""Ordinary developer lines, the other half: they end confined as they do bare."""

from __future__ import annotations

import pytest

from tests.sandbox import ordinary_table, tables

pytestmark = tables.REAL_BASH


@pytest.mark.parametrize("part", range(2))
def test_ordinary_lines_end_confined_as_they_do_bare(part: int) -> None:
    """The same exit code, line by line."""
    lines = ordinary_table.lines()[1::2][part::2]
    tables.end_alike(f"ordinary {part + 1}/2", lines, ordinary_table.SETUP)
