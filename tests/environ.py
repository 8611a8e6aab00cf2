"""Environments for the programs that tests start."""

from __future__ import annotations

import os
from pathlib import Path


def clean_environ(home: str | Path, **more: str) -> dict[str, str]:
    """Nothing of the user's: a home of its own, the system's programs, and no service but the tests'."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "HOOKLINE_SERVICE": os.environ["HOOKLINE_SERVICE"], **more}
