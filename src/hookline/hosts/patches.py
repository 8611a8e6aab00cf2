"""Patches in the `*** Begin Patch` format: which files they touch, as the tool calls they amount to. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from hookline.errors import EventError

_HEADER = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+?)\s*$")
_TOOL = {"Add File": "Write", "Update File": "Edit", "Delete File": "Edit", "Move to": "Write"}


def touched(patch: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """One `Write` or `Edit` for each file that a patch creates, changes, moves or deletes."""
    if not isinstance(patch, str):
        raise EventError("patch: expected a text; there is no telling which files it touches")
    found = list(_files(patch))
    if not found:
        raise EventError("patch: it names no file; there is no telling what it touches")
    yield from found


_HEREDOC = re.compile(r"(?:^|[;&|\s])(?:cd\s+(?P<quote>['\"]?)(?P<folder>[^\n]+?)(?P=quote)\s*&&\s*)?apply_?patch\s*<<")


def in_heredoc(line: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same for a patch that a shell line feeds to `apply_patch`, which Codex applies itself; most have none."""
    begin = _HEREDOC.search(line) if isinstance(line, str) else None
    if begin is None:
        return
    for tool, call in _files(line[begin.end() :]):
        yield tool, {**call, "file_path": str(PurePath(begin["folder"] or "", call["file_path"]))}


def _files(patch: str) -> Iterator[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, str, list[str]]] = []
    for line in patch.splitlines():
        header = _HEADER.match(line)
        if header:
            calls.append((_TOOL[header[1]], header[2], []))
        elif calls:
            calls[-1][2].append(line)
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
