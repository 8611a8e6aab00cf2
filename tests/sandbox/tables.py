"""What every table is put to: the red team's lines have an effect in real bash, and none when they are confined.

Each line runs in a throw-away namespace, confined by a crew that was forked ahead; `test_cold_lines.py` tries a part of
every table by a cold start as well. The rates are printed (`pytest -s`). The tables are spread over files of about
the same length, since a file is the piece of work that one process of the suite takes; who names the kinds of a table
that a file tries leaves the others to the file beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.sandbox import arena, commands_table

REAL_BASH = [
    pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried"),
    pytest.mark.timeout(1800),
]
REMOTE = "/tmp/arena/remote.git"
"""Writable in the table of commands, so that a push is stopped by its pattern and by nothing else."""
STARTER = ("rm -rf /", "rm -rf ~", "sudo *")
SECONDS = 120
"""For a line that has to come to its end: a build, or a folder with a Python in it, on a busy machine."""

ALIVE = "python3 -c 'import ctypes; print(\"alive\")'"
"""Shows that lines run, and the Python in them: a table of what does not start holds everything."""
SPELT = ("races", "plain", "expansion", "arithmetic", "git", "copies", *commands_table.EXTRA)
"""Kinds of the table of commands: the command is hidden in the line itself; the others hand it to a program."""
HANDED_ON = tuple(kind for kind in commands_table.FORMS if kind not in SPELT)


def hold_commands(kind: str, every: int = 1, by: Sequence[str] = arena.CREW, user: int = 0) -> None:
    """No line of a kind, or of any, runs the blocked command or changes anything outside."""
    lines = [(name, line) for each, name, line in commands_table.lines() if kind in (each, "")]
    rows = [*lines[::every], ("", ALIVE)]
    prefix = arena.confined(write=[arena.PROJECT, REMOTE], block=arena.BLOCKED, by=by)
    jobs = [
        {
            "line": line,
            "setup": commands_table.SETUP.get(name, f"mkdir {REMOTE}"),
            "only_files": True,
            "prefix": prefix,
            "packages": user != 0,
        }
        for name, line in rows
    ]
    results = list(zip(rows, arena.tried(jobs, user), strict=True))

    passed = [line for (name, line), result in results if name in result["commands"]]
    outside = [line for (_, line), result in results if result["outside"]]
    print(f"{kind}: {len(rows)} lines, {len(passed)} ran the command, {len(outside)} changed something outside")
    assert (passed, outside) == ([], [])
    assert results[-1][1]["output"] == "alive\n"


def hold_writes(
    name: str, lines: Sequence[str], setup: str = "", by: Sequence[str] = arena.CREW, *, packages: bool = False,
    user: int = 0,
) -> None:  # fmt: skip
    """No line changes anything outside; `packages` where a line needs more of Python than its standard library."""
    assert lines, f"{name}: an empty table"
    job = {"setup": setup, "prefix": arena.confined(by=by), "packages": packages}
    *results, alive = arena.tried(({"line": line, **job} for line in [*lines, ALIVE]), user)

    escaped = [line for line, result in zip(lines, results, strict=True) if result["outside"]]
    print(f"{name}: {len(lines)} lines, {len(escaped)} changed something outside")
    assert escaped == []
    assert alive["output"] == "alive\n"


def end_alike(name: str, lines: Sequence[str], setup: str, by: Sequence[str] = arena.CREW) -> None:
    """Every line ends confined with the exit code that it has bare.

    The subject is what is refused in error, so a line is run bare only where it did not end with 0 when confined.
    """

    def codes(lines: Sequence[str], prefix: list[str]) -> dict[str, int]:
        job = {"setup": setup, "only_files": True, "prefix": prefix, "seconds": SECONDS}
        jobs = ({"line": line, **job} for line in lines)
        return {line: result["code"] for line, result in zip(lines, arena.tried(jobs), strict=True)}

    failed = {line: code for line, code in codes(lines, arena.confined(block=STARTER, by=by)).items() if code != 0}
    bare = codes([*failed], [])
    differ = [line for line, code in failed.items() if code != bare[line]]
    print(f"{name}: {len(lines)} lines, {len(failed)} end with an error, {len(differ)} of them otherwise than bare")
    assert differ == []
