"""Ordinary developer lines, every other one: they end confined as they do bare; and how many of all are interrupted."""

from __future__ import annotations

import pytest

from hookline import Hooks
from hookline.events import PreToolUse
from hookline.guards import commands, paths, sandboxing
from hookline.replies import Decision
from tests.sandbox import ordinary_table, tables

pytestmark = tables.REAL_BASH


@pytest.mark.parametrize("part", range(2))
def test_ordinary_lines_end_confined_as_they_do_bare(part: int) -> None:
    """The same exit code, line by line."""
    lines = ordinary_table.lines()[::2][part::2]
    tables.end_alike(f"ordinary {part + 1}/2", lines, ordinary_table.SETUP)


async def test_ordinary_lines_are_not_interrupted(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the starter's guards; without confinement every seventh line would be."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lines = ordinary_table.lines()
    rates = {}
    for word in ("auto", "off"):
        hooks = Hooks()
        hooks.add(paths.stay_inside("/srv/app", also=["/tmp"], confine=word))
        hooks.add(commands.block(tables.STARTER, confine=word))
        calls = [PreToolUse(cwd="/srv/app", tool_name="Bash", tool_input={"command": line}) for line in lines]
        verdicts = [await hooks.fire(call) for call in calls]
        rates[word] = sum(verdict.decision > Decision.ALLOW for verdict in verdicts) / len(lines)

    print(f"interrupted: {rates['auto']:.1%} of {len(lines)} ordinary lines; {rates['off']:.1%} without confinement")
    assert len(lines) >= 300
    assert rates["auto"] <= 0.015 if not sandboxing.unavailable() else rates["off"] > 0
