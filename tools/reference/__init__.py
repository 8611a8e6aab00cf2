"""The reference pages, generated from the code: `python -m tools.reference` writes them, a test compares them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.reference import api, commands, errors, events, replies, settings

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
NOTE = "<!-- Generated from the code by `python -m tools.reference`; `make docs` does it too. Do not edit. -->\n\n"

PAGES: dict[str, Callable[[], str]] = {
    "events.md": events.page,
    "replies.md": replies.page,
    "settings.md": settings.page,
    "commands.md": commands.page,
    "python.md": api.page,
    "testing.md": api.testing_page,
    "errors.md": errors.page,
    "schema.json": events.schema_page,
    "settings.schema.json": settings.schema_page,
}
"""Every generated file and who makes it."""


def page(name: str) -> str:
    """What a generated file should say now."""
    return ("" if name.endswith(".json") else NOTE) + PAGES[name]()


def write() -> list[str]:
    """Write what has changed; the names of the files that have."""
    changed = []
    for name in PAGES:
        path, text = FOLDER / name, page(name)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            changed.append(name)
    return changed
