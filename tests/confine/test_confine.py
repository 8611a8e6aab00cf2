"""`hookline confine`: what a confined line can and cannot do, seen by running lines."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.confine import arena

pytestmark = pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried")


def run(line: str, *, setup: str = "", **policy: Any) -> dict[str, Any]:
    [result] = arena.tried([{"line": line, "setup": setup, "prefix": arena.confined(**policy)}])
    return result


def test_a_write_outside_is_refused_and_the_line_says_how_to_allow_it() -> None:
    """One clear line: what, why, by whom, and what to add."""
    result = run("echo x > $OUT/new; echo inside > made; cat made")

    assert result["outside"] == []
    assert (
        "hookline: refused to write `/tmp/arena/outside/new`: it is outside `/tmp/arena/home/project` (--write); "
        "to allow it, add `--write /tmp/arena/outside`"
    ) in result["output"]
    assert "inside" in result["output"]


def test_a_blocked_program_does_not_start_and_the_pattern_is_named() -> None:
    """The words are the real ones, after all expansion."""
    result = run('a=r; b=m; "$a$b" -r -f victim', block=["rm -rf *"])

    assert (result["outside"], result["commands"]) == ([], [])
    assert "hookline: refused `rm -r -f victim`: the pattern `rm -rf *` (--block)" in result["output"]


def test_the_exit_code_is_the_commands_own() -> None:
    """Also when a signal ended it, as shells count."""
    codes = [run(line)["code"] for line in ("exit 7", "true", "kill -9 $$", "exec no-such-program")]

    assert codes == [7, 0, 137, 127]


BAD = [
    ([], 64, "usage: hookline confine"),
    (["--help"], 0, "usage: hookline confine"),
    (["make"], 64, "write `--` before the command"),
    (["--write", ".", "--"], 64, "no command after `--`"),
    (["--write", "/no/such/folder", "--", "true"], 64, "--write: `/no/such/folder` does not exist"),
    (["--write", "--", "true"], 64, "--write: a value is missing"),
    (["--wrte", ".", "--", "true"], 64, "unknown argument `--wrte`"),
    (["--block", " ", "--", "true"], 64, "--block: an empty pattern"),
    (["--write", ".", "--", "no-such-program-at-all"], 127, "`no-such-program-at-all`: no such program"),
]


@pytest.mark.parametrize("flags, code, said", BAD)
def test_flags_that_cannot_be_understood_run_nothing(flags: list[str], code: int, said: str) -> None:
    """One line says what to write instead."""
    done = subprocess.run([*arena.HOOKLINE, *flags], capture_output=True, text=True, check=False)

    assert (done.returncode, said in done.stdout + done.stderr) == (code, True)
