"""Folders, files and words that are not UTF-8: each command works, or says what is wrong, and none breaks off."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.place import HOOKLINE, Place

NAME = os.fsdecode(b"caf\xe9")
TURNS = [{"tools": [["Bash", {"command": "ls"}]]}, {"text": "done"}]
HOOKS = 'from hookline import Hooks\nhooks = Hooks()\n@hooks.on("PreToolUse")\ndef look(event): pass\n'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A project whose folder has such a name."""
    place = Place(tmp_path / NAME)
    (place.base / "home").mkdir(parents=True)
    place.write("turns.json", TURNS)
    place.write("hooks.py", HOOKS)
    return place


@pytest.mark.parametrize("form", ["text", "stream-json"])
def test_an_agent_works_there(place: Place, form: str) -> None:
    """Its prompt has such a word, too; programs read question marks, because JSON cannot say it."""
    words = ("--trust", "--permission-mode", "bypassPermissions", "--output-format", form, "--verbose", "-p", NAME)
    done = place.run("run", "--model", "scripted:turns.json", *words)

    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert (json.loads(last)["result"] if form == "stream-json" else last) == "done"


def test_what_cannot_be_recorded_is_said(place: Place) -> None:
    """JSON cannot say these names: nothing is written that could not be read, or trusted, afterwards."""
    at_home = place.start(*HOOKLINE, "init")
    assert (at_home.returncode, "cannot be written as JSON" in at_home.stderr) == (1, True)
    assert not (place.project / ".claude").exists()

    lines = (["init"], ["trust", "--yes"], ["fire", "--bash", f"cat {NAME}"])
    done = [place.start(*HOOKLINE, *line, HOME=str(place.base.parent)) for line in lines]
    assert [one.returncode for one in done] == [1, 1, 1]
    assert ["is not UTF-8; rename it" in one.stderr for one in done] == [True, True, False]
    assert done[2].stderr.startswith("hookline fire: --bash: cannot be written as JSON: it has a lone surrogate")


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--json"), ("trust", "--json"), ("check", "--json"), ("list", "--hooks", f"{NAME}.py"),
        ("install", "codex", "--scope", "project", "--hooks", "hooks.py", "--json"),
        ("uninstall", "codex", "--scope", "project"), ("learn", "--dry-run"), ("audit", "show", NAME),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_no_command_breaks_off(place: Place, words: tuple[str, ...]) -> None:
    """Nothing is a traceback."""
    place.write(f"{NAME}.py", HOOKS)
    place.hooks("PreToolUse", {"type": "command", "command": "true"})
    done = place.run(*words)

    assert (done.returncode in (0, 1, 2), "Traceback" in done.stderr) == (True, False), done.stderr
