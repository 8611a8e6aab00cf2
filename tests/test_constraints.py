"""The pinned versions of everything that a contributor installs."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent


def test_every_pin_can_be_installed_on_the_oldest_python() -> None:
    """Debian 12 has 3.11.2: a version that wants a later 3.11 leaves whoever has that without `make test`."""
    oldest = re.findall(r"[\d.]+", tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])[
        0
    ]
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)

    wanted = {name: asked for name in pins if (asked := _asked(name))}

    assert len(wanted) > 50
    assert {name: asked for name, asked in wanted.items() if f"{oldest}.0" not in SpecifierSet(asked)} == {}


def _asked(name: str) -> str | None:
    """Which Pythons an installed package works on; None where it is not installed, or does not say."""
    try:
        return metadata(name)["Requires-Python"]
    except PackageNotFoundError:
        return None
