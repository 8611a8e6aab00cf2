"""What changed between two texts, in hunks, as hooks are told (`structuredPatch`)."""

from __future__ import annotations

import difflib
import re
from typing import Any

__all__ = ["structured_patch"]

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
#: beyond this many lines the comparison costs more than anyone gains from it
MOST_LINES = 20_000


def structured_patch(old: str, new: str) -> list[dict[str, Any]]:
    """The hunks that lead from `old` to `new`, with three lines of context; none for very long texts."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MOST_LINES:
        return []
    hunks: list[dict[str, Any]] = []
    for line in difflib.unified_diff(before, after, lineterm=""):
        head = HUNK.match(line)
        if head:
            hunks.append(_hunk(head))
        elif hunks:
            hunks[-1]["lines"].append(line)
    return hunks


def _hunk(head: re.Match[str]) -> dict[str, Any]:
    start, count, new_start, new_count = (int(group) if group else 1 for group in head.groups())
    return {"oldStart": start, "oldLines": count, "newStart": new_start, "newLines": new_count, "lines": []}
