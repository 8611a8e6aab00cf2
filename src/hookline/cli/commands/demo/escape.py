"""The demo's last scene: a line whose text says nothing of what it does, and who stops it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from hookline.guards.sandboxing import launcher, unavailable
from hookline.sandbox.policy import Policy

LINE = "sh setup.sh"
SCRIPT = "echo 'hello' > ../outside.txt\n"


class Escape(msgspec.Struct, frozen=True):
    """What the line was, what the kernel said to it, and whether anything got out; or why it was not tried."""

    line: str = LINE
    refused: str = ""
    escaped: bool = False
    skipped: str = ""


def attempt(project: Path) -> Escape:
    """Run the line confined to the project; a real process, a real refusal."""
    if reason := unavailable():
        return Escape(skipped=reason)
    (project / "setup.sh").write_text(SCRIPT)
    policy = Policy((str(project),), write_guard="paths.stay_inside")
    command = [*launcher(), *policy.arguments(), "--", "bash", "-c", LINE]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    said = [line for line in done.stderr.splitlines() if line.startswith("hookline: ")]
    return Escape(refused="\n".join(said), escaped=(project.parent / "outside.txt").exists())
