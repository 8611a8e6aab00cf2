"""Where transcripts lie: in the folders that Claude Code keeps its own in, under the same names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from hookline.errors import TranscriptError

SLUG_LIMIT = 200


def project_folder(cwd: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the transcripts of a project lie."""
    home = Path(environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME") or Path.home(), ".claude"))
    slug = re.sub(r"[^a-zA-Z0-9]", "-", cwd)
    if len(slug) > SLUG_LIMIT:  # file systems allow 255 bytes
        slug = f"{slug[:SLUG_LIMIT]}-{hashlib.sha256(cwd.encode()).hexdigest()[:8]}"
    return home / "projects" / slug


def transcript_path(cwd: str, session_id: str, environ: Mapping[str, str] = os.environ) -> Path:
    """A session's file."""
    return project_folder(cwd, environ) / f"{session_id}.jsonl"


def subagent_path(transcript: Path, agent_id: str) -> Path:
    """A subagent's file, beside its session's."""
    return transcript.with_suffix("") / "subagents" / f"agent-{agent_id}.jsonl"


def find(session: str, cwd: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The transcript a `--resume` value means: a path, or a session id of this project or, failing that, of any."""
    if session.endswith(".jsonl") and Path(session).is_file():
        return Path(session)
    folder = project_folder(cwd, environ)
    name = f"{session}.jsonl"
    candidates = [folder / name, *sorted(folder.parent.glob(f"*/{name}"))] if re.fullmatch(r"[\w-]+", session) else []
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise TranscriptError(folder, f"no session `{session}`; `--continue` resumes the last one")
    return found


def latest(cwd: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The project's last written transcript (`--continue`)."""
    folder = project_folder(cwd, environ)
    found = max(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns, default=None)
    if found is None:
        raise TranscriptError(folder, "no session to continue")
    return found
