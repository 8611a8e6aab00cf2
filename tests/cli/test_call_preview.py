"""What a person reads before they permit a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.cli.repl import MOST_LINES, preview

SHOWN: list[tuple[str, dict[str, Any], list[str]]] = [
    ("Bash", {"command": "ls\nrm x", "description": "look"}, ["Bash (look)", "$ ls", "$ rm x"]),
    ("Edit", {"file_path": "/a", "old_string": "x\ny", "new_string": "x\nz"}, ["Edit /a", " x", "-y", "+z"]),
    ("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": True},
     ["Edit /a  (every occurrence)", "-x", "+y"]),
    ("Write", {"file_path": "/nowhere/a", "content": "x\n"}, ["Write /nowhere/a  (new file)", "+x"]),
    ("WebFetch", {"url": "https://h.example/", "prompt": "why?"}, ["WebFetch https://h.example/", "why?"]),
    ("NotebookEdit", {"notebook_path": "/a.ipynb", "cell_id": "c1", "new_source": "1", "edit_mode": "insert"},
     ["NotebookEdit /a.ipynb  insert c1", "+1"]),
    ("mcp__sh__run", {"command": "ls"}, ["mcp__sh__run ", "$ ls"]),
    ("mcp__sh__run", {"command": "ls", "as": "root"}, ['mcp__sh__run {"command":"ls","as":"root"}']),
    ("mcp__db__drop", {"table": "users"}, ['mcp__db__drop {"table":"users"}']),
    ("Bash", {"command": "echo \x1b[2K\u202eevil"}, ["Bash ", "$ echo \\x1b[2K\\u202eevil"]),
]  # fmt: skip


@pytest.mark.parametrize("tool, given, expected", SHOWN)
def test_a_call_is_shown_as_what_it_does(tool: str, given: dict[str, Any], expected: list[str]) -> None:
    """The command, the change or the address; nothing in it steers the terminal."""
    assert preview(tool, given) == expected


def test_a_file_that_is_there_is_compared(tmp_path: Path) -> None:
    """Only what changes is shown; what is no text is not compared."""
    path = tmp_path / "a"
    path.write_text("".join(f"{n}\n" for n in range(50)))
    new = path.read_text().replace("25\n", "changed\n")
    assert preview("Write", {"file_path": str(path), "content": new})[1:] == [
        " 23",
        " 24",
        "-25",
        "+changed",
        " 26",
        " 27",
    ]
    path.write_bytes(b"\xff\x00")
    assert preview("Write", {"file_path": str(path), "content": "x"})[1:] == ["+x"]


def test_a_long_change_is_cut(tmp_path: Path) -> None:
    """And says how much there is; a command is shown whole."""
    assert preview("Bash", {"command": "true\n" * 99 + "rm x"})[-1] == "$ rm x"
    shown = preview("Write", {"file_path": str(tmp_path / "a"), "content": "x\n" * 100})

    assert (len(shown), shown[-1]) == (MOST_LINES + 1, "… and 61 more lines")
