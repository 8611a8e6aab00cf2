"""What a call would do, for a person who has to permit it: the command, the change as a diff, the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hookline.cli.style import paint
from hookline.display import lines, one_line

__all__ = ["preview"]

MOST_LINES = 40
#: a larger file is not compared: the new text is shown by itself
MOST_COMPARED = 1 << 20


def preview(tool: str, given: Mapping[str, Any]) -> list[str]:
    """A headline and the lines below it, safe to show; an input with anything else in it is shown as it is."""
    form = next((form for form, known in FORMS.items() if known[0] in given and set(given) <= set(known)), _whole)
    shown = form(given)
    more = 0 if form is _command else len(shown) - MOST_LINES  # what runs is shown whole: the end of it counts
    if more <= 0:
        return [f"{one_line(tool)} {shown[0]}", *shown[1:]]
    return [f"{one_line(tool)} {shown[0]}", *shown[1:MOST_LINES], f"… and {more} more lines"]


def _command(given: Mapping[str, Any]) -> list[str]:
    told = one_line(str(given.get("description") or ""))
    return [f"({told})" if told else "", *(f"$ {line}" for line in lines(str(given.get("command", ""))))]


def _edit(given: Mapping[str, Any]) -> list[str]:
    where = str(given.get("file_path", ""))
    every = "  (every occurrence)" if given.get("replace_all") else ""
    diff = _diff(str(given.get("old_string", "")), str(given.get("new_string", "")))
    return [one_line(where) + every, *diff]


def _write(given: Mapping[str, Any]) -> list[str]:
    path = Path(str(given.get("file_path", "")))
    old = _text(path)
    kind = "  (new file)" if old is None and not path.exists() else ""
    return [one_line(str(path)) + kind, *_diff(old or "", str(given.get("content", "")))]


def _notebook(given: Mapping[str, Any]) -> list[str]:
    cell = f"  {given.get('edit_mode', 'replace')} {given.get('cell_id') or 'a cell'}"
    return [one_line(str(given.get("notebook_path", "")) + cell), *_diff("", str(given.get("new_source", "")))]


def _address(given: Mapping[str, Any]) -> list[str]:
    return [one_line(str(given.get("url", ""))), *lines(str(given.get("prompt", "")))]


def _whole(given: Mapping[str, Any]) -> list[str]:
    return [one_line(msgspec.json.encode(given).decode())]


FORMS: dict[Callable[[Mapping[str, Any]], list[str]], tuple[str, ...]] = {
    _command: ("command", "description", "timeout", "run_in_background"),
    _edit: ("old_string", "new_string", "file_path", "replace_all"),
    _write: ("content", "file_path"),
    _notebook: ("new_source", "notebook_path", "cell_id", "cell_type", "edit_mode"),
    _address: ("url", "prompt"),
}
"""Which arguments each form shows, the telling one first."""


def _text(path: Path) -> str | None:
    """What a file says now, if that can be compared."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_COMPARED:
            return None
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _diff(old: str, new: str) -> list[str]:
    from difflib import unified_diff

    changed = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[2:]
    return [_coloured(shown) for line in changed if not line.startswith("@@") or line != changed[0]
            for shown in lines(line)]  # fmt: skip


def _coloured(line: str) -> str:
    import sys

    colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
    return paint(line, colour, sys.stderr)
