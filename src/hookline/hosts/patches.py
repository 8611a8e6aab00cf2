"""Patches in the `*** Begin Patch` format: which files they touch, as the tool calls they amount to. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hookline.errors import EventError

_HEADER = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+?)\s*$")
_TOOL = {"Add File": "Write", "Update File": "Edit", "Delete File": "Edit", "Move to": "Write"}


def touched(patch: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """One `Write` or `Edit` for each file that a patch creates, changes, moves or deletes."""
    if not isinstance(patch, str):
        raise EventError("patch: expected a text; there is no telling which files it touches")
    calls: list[tuple[str, str, list[str]]] = []
    for line in patch.splitlines():
        header = _HEADER.match(line)
        if header:
            calls.append((_TOOL[header[1]], header[2], []))
        elif calls:
            calls[-1][2].append(line)
    if not calls:
        raise EventError("patch: it names no file; there is no telling what it touches")
    for tool, path, lines in calls:
        yield tool, _call(tool, path, lines)


def _call(tool: str, path: str, lines: list[str]) -> dict[str, Any]:
    added = "\n".join(line[1:] for line in lines if line.startswith("+"))
    if tool == "Write":
        return {"file_path": path, "content": added}
    return {
        "file_path": path,
        "old_string": "\n".join(line[1:] for line in lines if line.startswith("-")),
        "new_string": added,
    }
