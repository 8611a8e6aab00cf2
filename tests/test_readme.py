"""README as people meet it: in a clone, and on a package index."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def build_hook() -> Any:
    pytest.importorskip("hatchling", reason="needs the build backend")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_links_to_a_guessed_repository() -> None:
    """There is no public address yet: nothing names one."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py"), ROOT / "pyproject.toml"]

    assert [str(page) for page in pages if "github.com/hookline" in page.read_text()] == []


def test_links_are_made_absolute_from_one_variable() -> None:
    """Each relative link, and nothing else."""
    readme = (ROOT / "README.md").read_text()
    made = build_hook().with_absolute_links(readme, "https://example.org/hookline/")

    assert build_hook().with_absolute_links(readme, "") == readme
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", made) == []
    assert "](https://example.org/hookline/docs/tutorial.md)" in made
