"""The red team's tables: lines that have an effect in real bash have none when they are confined.

Each table is run twice in throw-away namespaces: bare, which proves that the attacks are real, and confined. The rates
are printed (`pytest -s`).
"""

from __future__ import annotations

import pytest

from hookline import Hooks
from hookline.events import PreToolUse
from hookline.guards import commands, confining, paths
from hookline.replies import Decision
from tests.confine import (
    arena,
    calls_table,
    commands_table,
    ordinary_table,
    paths_table,
    processes_table,
    programs_table,
)

pytestmark = [
    pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried"),
    pytest.mark.timeout(1800),
]

REMOTE = "/tmp/arena/remote.git"
"""Writable in the table of commands, so that a push is stopped by its pattern and by nothing else."""
STARTER = ("rm -rf /", "rm -rf ~", "sudo *")


@pytest.mark.parametrize("kind", [*commands_table.FORMS, *commands_table.EXTRA])
def test_no_way_to_run_a_blocked_command_has_an_effect(kind: str) -> None:
    """However it is spelt, wrapped, copied or handed on."""
    rows = [*((name, line) for each, name, line in commands_table.lines() if each == kind), ("", "echo alive")]
    prefix = arena.confined(write=[arena.PROJECT, REMOTE], block=arena.BLOCKED)
    jobs = [
        {"line": line, "setup": commands_table.SETUP.get(name, REMOTE_FOLDER), "prefix": prefix} for name, line in rows
    ]
    results = list(zip(rows, arena.tried(jobs), strict=True))

    passed = [line for (name, line), result in results if name in result["commands"]]
    outside = [line for (_, line), result in results if result["outside"]]
    print(f"{kind}: {len(rows)} lines, {len(passed)} ran the command, {len(outside)} changed something outside")
    assert (passed, outside) == ([], [])
    assert results[-1][1]["output"] == "alive\n"


REMOTE_FOLDER = f"mkdir {REMOTE}"


@pytest.mark.parametrize("part", range(4))
def test_no_way_to_write_outside_has_an_effect(part: int) -> None:
    """However the place is spelt, whoever writes, whatever is changed."""
    rows = [*paths_table.lines(), *(("program", line) for line in programs_table.lines())][part::4]
    results = list(arena.tried({"line": line, "prefix": arena.confined()} for _, line in rows))

    escaped = [line for (_, line), result in zip(rows, results, strict=True) if result["outside"]]
    print(f"paths {part + 1}/4: {len(rows)} lines, {len(escaped)} changed something outside")
    assert escaped == []


@pytest.mark.parametrize("programs", [calls_table.CALLS, calls_table.RACES], ids=["calls", "races"])
def test_no_system_call_changes_a_file_outside(programs: list[str]) -> None:
    """By any number, through any descriptor, and also where a thread swaps what the call is given."""
    lines = calls_table.lines(programs)
    results = list(arena.tried({"line": line, "prefix": arena.confined()} for line in lines))

    escaped = [program for program, result in zip(programs, results, strict=True) if result["outside"]]
    print(f"calls: {len(lines)} lines, {len(escaped)} changed something outside")
    assert escaped == []


def test_no_program_outside_is_reached() -> None:
    """Neither its limits and memory nor its terminal, sockets, keys and queues."""
    lines = processes_table.lines()
    jobs = ({"line": line, "setup": processes_table.SETUP, "prefix": arena.confined()} for line in lines)

    escaped = [line for line, result in zip(lines, arena.tried(jobs), strict=True) if result["outside"]]
    print(f"processes: {len(lines)} lines, {len(escaped)} touched a program outside")
    assert escaped == []


def test_the_attacks_are_real() -> None:
    """Bare, most of a sample has its effect: the tables test something."""
    sample = paths_table.lines()[::25]
    results = list(arena.tried({"line": line} for _, line in sample))
    rows = [(name, line) for _, name, line in commands_table.lines()[::25]]
    jobs = [{"line": line, "setup": commands_table.SETUP.get(name, "")} for name, line in rows]
    ran = [name in result["commands"] for (name, _), result in zip(rows, arena.tried(jobs), strict=True)]
    calls = list(arena.tried({"line": line} for line in calls_table.lines(calls_table.CALLS[::10])))
    beside = [{"line": line, "setup": processes_table.SETUP} for line in processes_table.lines()[::10]]
    touched = [bool(result["outside"]) for result in arena.tried(beside)]

    assert sum(bool(result["outside"]) for result in results) > len(sample) * 0.8
    assert sum(ran) > len(ran) * 0.7
    assert sum(bool(result["outside"]) for result in calls) > len(calls) * 0.7
    assert sum(touched) > len(touched) * 0.7


@pytest.mark.parametrize("part", range(3))
def test_ordinary_lines_end_confined_as_they_do_bare(part: int) -> None:
    """The same exit code, line by line."""
    lines = ordinary_table.lines()[part::3]
    codes = {}
    for name, prefix in (("bare", []), ("confined", arena.confined(block=STARTER))):
        jobs = ({"line": line, "setup": ordinary_table.SETUP, "prefix": prefix} for line in lines)
        codes[name] = [result["code"] for result in arena.tried(jobs)]

    differ = [line for line, *both in zip(lines, codes["bare"], codes["confined"], strict=True) if len(set(both)) > 1]
    print(f"ordinary {part + 1}/3: {len(lines)} lines, {len(differ)} end differently")
    assert differ == []


async def test_ordinary_lines_are_not_interrupted(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the starter's guards; without confinement every seventh line would be."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lines = ordinary_table.lines()
    rates = {}
    for word in ("auto", "off"):
        hooks = Hooks()
        hooks.add(paths.stay_inside("/srv/app", also=["/tmp"], confine=word))
        hooks.add(commands.block(STARTER, confine=word))
        calls = [PreToolUse(cwd="/srv/app", tool_name="Bash", tool_input={"command": line}) for line in lines]
        verdicts = [await hooks.fire(call) for call in calls]
        rates[word] = sum(verdict.decision > Decision.ALLOW for verdict in verdicts) / len(lines)

    print(f"interrupted: {rates['auto']:.1%} of {len(lines)} ordinary lines; {rates['off']:.1%} without confinement")
    assert len(lines) >= 300
    assert rates["auto"] <= 0.015 if not confining.unavailable() else rates["off"] > 0
