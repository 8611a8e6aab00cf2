"""Shared by the tests on real agent CLIs."""

import sys
from pathlib import Path

import pytest


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A `hookline` of its own, which a test may remove."""
    path = tmp_path / "bin" / "hookline"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\nfrom hookline.__main__ import main\n\nmain()\n")
    path.chmod(0o755)
    return path
