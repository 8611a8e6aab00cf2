"""Completion scripts: what a shell offers is what the parsers know."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hookline.cli.main import COMMANDS
from tests import forked


def script(shell: str) -> str:
    done = forked.run(["completion", shell], cwd=Path.cwd(), env=os.environ)
    done.check_returncode()
    return done.stdout.decode()


def offered(*words: str) -> set[str]:
    """What bash offers at the end of these words, asked of a real bash."""
    line = f"""
{script("bash")}
COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
_hookline; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=60)
    return set(ran.stdout.split())


def test_bash_offers_every_command() -> None:
    """And `help`."""
    assert offered("hookline", "") == {*COMMANDS, "help"}


def test_bash_offers_a_commands_flags_and_subcommands() -> None:
    """Read from the command's own parser."""
    assert {"--tool", "--input", "--json"} <= offered("hookline", "fire", "--")
    assert {"show", "verify"} <= offered("hookline", "audit", "")
    assert offered("hookline", "packs", "") == {"--help", "--json"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_they_can_parse(shell: str) -> None:
    """Parsed by the shell itself where it is installed; the names are there everywhere."""
    text = script(shell)

    assert all(name in text for name in COMMANDS)
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True, timeout=60)
