"""A project and a home of their own, and `hookline` as a real process in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from tests import forked

HOOKLINE = (sys.executable, "-m", "hookline.cli.main")


class Place(msgspec.Struct, frozen=True):
    """Real folders; `run` starts `hookline` in the project."""

    base: Path

    @property
    def project(self) -> Path:
        return self.base / "proj"

    @property
    def env(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "HOOKLINE"))}
        return {**inherited, "HOME": str(self.base / "home"), "HOOKLINE_SERVICE": os.environ["HOOKLINE_SERVICE"]}

    def write(self, name: str, value: Any, mode: int = 0o644) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        path.chmod(mode)
        return path

    def hooks(self, event: str, *entries: dict[str, Any], matcher: str = "") -> None:
        """A project's settings file with one group of hooks."""
        self.write(".claude/settings.json", {"hooks": {event: [{"matcher": matcher, "hooks": list(entries)}]}})

    def run(self, *argv: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """`hookline` to its end, forked rather than started: in most tests, a start is not the subject."""
        return forked.as_text(forked.run(argv, cwd=self.project, env={**self.env, **env}, stdin=stdin.encode()))

    def start(self, *argv: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run any program to its end, in the project."""
        return subprocess.run(
            argv, cwd=self.project, env={**self.env, **env}, input=stdin, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip


def command(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **more}


def denies(reason: str) -> dict[str, Any]:
    """An entry that denies with this reason."""
    return command(f"echo '{reason}' >&2; exit 2", name="no")
