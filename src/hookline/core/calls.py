"""Notes on one call of a tool: the process that runs a confined line leaves them for those who ask afterwards."""

import hashlib
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from hookline.core.files import private_folder, remove_older, state_folder

_KEPT = 24 * 3600.0
_KINDS = {"program": "programs", "written": "written", "host": "hosts", "refused": "refused"}
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_MOST = 100


def call_notes(session_id: str, tool_use_id: str, line: str) -> Path:
    """Where a call's notes are put, without an ending; outside of what a confined line may write to."""
    folder = private_folder(state_folder() / "confine")
    _tidy(folder)
    return folder / _name(session_id, tool_use_id, line)


def _name(session_id: str, tool_use_id: str, line: str) -> str:
    name = "".join(char for char in tool_use_id if char.isalnum() or char in "_-")[:128]
    return name or hashlib.sha256(f"{session_id}\0{line}".encode("utf-8", "replace")).hexdigest()[:32]


def _tidy(folder: Path) -> None:
    """Once a day, drop the notes of calls that were not asked about afterwards."""
    mark = folder.with_suffix(".tidied")
    with suppress(OSError):
        if time.time() - mark.stat().st_mtime < _KEPT:
            return
    mark.touch(0o600)
    remove_older(folder.iterdir(), _KEPT)


def observed_effect(session_id: str, tool_use_id: str, line: str) -> dict[str, Any] | None:
    """What the kernel's judge saw a line do: `programs` started, files `written`, `hosts` reached, what was `refused`.

    `None` where the line was not confined: that it is not known is not the same as nothing. What it saw beyond 100 of
    a kind is left out, and then there is `more`.
    """
    name = f"{_name(session_id, tool_use_id, line)}.effect"
    try:
        lines = (state_folder() / "confine" / name).read_text(errors="replace").splitlines()
    except OSError:
        return None
    found: dict[str, list[str]] = {}
    for kind, _, what in (one.partition(" ") for one in lines):
        plain = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), what)  # secrets are looked for in what it was
        found.setdefault(_KINDS.get(kind, "more"), []).append(plain)
    shown = {kind: found[kind][:_MOST] for kind in _KINDS.values() if kind in found}
    left_out = len(lines) - sum(map(len, shown.values()))
    return {**shown, "more": True} if left_out else shown
