"""`make fleet-demo`: a hub and three machines, through the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_demo_plays_to_its_end() -> None:
    """A policy reaches every machine, refuses there, is recorded at the hub and shown on its page."""
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-m", "tools.fleet_demo"]
    played = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)

    assert played.returncode == 0, played.stderr
    for name in ("laptop", "desktop", "runner"):
        assert f"{name}: `git push --force origin main` is blocked by the pattern" in played.stdout
        assert f"  {name}: policy 1, chain whole" in played.stdout
