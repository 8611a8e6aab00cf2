"""Whether the user's own entry is asked, too: only then may another one for the same hooks stay silent.

That an entry stands in a file does not mean that the agent runs it: it may not read that file this time (`claude
--setting-sources project`), or not trust it (Codex). So the user's entry leaves a note of each event it is asked about,
and another one that finds no fresh note judges. What is judged twice then is judged; what is not judged runs.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from pathlib import Path

from hookline.core.files import private_folder, state_folder
from hookline.core.wire.json_text import read_object
from hookline.hosts.host import Host
from hookline.hosts.install.entries import config_path

PATIENCE = 1.0
"""Seconds to wait for the note: both entries are started at the same time, on a machine that may be busy."""

_AT_ONCE = 0.05
"""Seconds to wait where no answer came the last time."""

_FRESH = 5.0
"""Seconds by which a note may be older than the entry that looks for it."""

_KEPT = 24 * 3600.0


def _note(host: Host, event: str, source: str, data: bytes) -> Path | None:
    """Where the note on an event of this session is; nowhere, if the payload names no session."""
    session = _session(data)
    if not session:
        return None
    key = f"{host.name}\0{session}\0{event}\0{source}"
    return state_folder() / "asked" / hashlib.sha256(key.encode()).hexdigest()[:32]


def _session(data: bytes) -> str:
    found = read_object(data) or {}
    given = found.get("input")
    inner = given if isinstance(given, dict) else {}
    names = ("session_id", "sessionId", "taskId", "conversation_id")
    return str(next((found[name] for name in names if found.get(name)), None) or inner.get("sessionID") or "")


def mark_handled(host: Host, event: str, source: str, data: bytes) -> None:
    """Say that the user's entry is being asked, if there may be anybody who wants to know."""
    note = _note(host, event, source, data) if _has_company(host) else None
    if note is None:
        return
    with suppress(OSError):
        if not note.exists():
            _tidy(private_folder(note.parent))
        note.touch(0o600)


def _has_company(host: Host) -> bool:
    """Whether another entry may ask the same hooks: the project's, or one that a host reads in others' files."""
    return bool(host.borrows) or (bool(host.config.project) and config_path(host, "project").exists())


def _tidy(folder: Path) -> None:
    """Remove the notes of sessions that are long over."""
    before = time.time() - _KEPT
    for old in folder.iterdir():
        with suppress(OSError):
            if old.stat().st_mtime < before:
                old.unlink()


def was_handled(host: Host, event: str, source: str, data: bytes) -> bool:
    """Whether the user's entry is being asked about this very event; waits a moment for it."""
    note = _note(host, event, source, data)
    if note is None:
        return False
    alone = note.with_suffix(".alone")
    since = time.time() - _FRESH
    until = time.monotonic() + (_AT_ONCE if alone.exists() else PATIENCE)
    while True:
        with suppress(OSError):
            if note.stat().st_mtime >= since:
                return True
        if time.monotonic() >= until:
            break
        time.sleep(0.01)
    with suppress(OSError):
        private_folder(note.parent)
        alone.touch(0o600)
    return False
