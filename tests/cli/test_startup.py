"""What `hookline fire` does not import: its start-up is what every `hookline …` command hook costs."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.place import Place, command

NOT_NEEDED = {
    "aiohttp", "anthropic", "bz2", "dataclasses", "difflib", "hookline.agent", "hookline.guards",
    "hookline.core.shell.parser", "hookline.records", "hookline.runners.warm",
    "mcp", "random", "rich", "secrets", "shutil", "tempfile", "yaml",
}  # fmt: skip


def test_fire_imports_only_what_one_command_hook_needs(place: Place) -> None:
    """Everything else is imported where it is used."""
    place.hooks("PreToolUse", command("true"), matcher="Bash")
    fire = ("hookline.cli.main", "fire", "PreToolUse", "--tool", "Bash", "--trust")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *fire], cwd=place.project,
        env={name: value for name, value in place.env.items() if not name.startswith("COV")},  # coverage imports much
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}

    assert "hookline.runners.command" in imported
    assert imported & NOT_NEEDED == set()
