"""The table of commands, first half: the blocked command is hidden in the line itself."""

from __future__ import annotations

import pytest

from tests.sandbox import tables

pytestmark = tables.REAL_BASH


@pytest.mark.parametrize("kind", tables.SPELT)
def test_no_way_to_run_a_blocked_command_has_an_effect(kind: str) -> None:
    """However it is spelt, wrapped, copied or handed on."""
    tables.hold_commands(kind)
