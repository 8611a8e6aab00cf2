"""Every view of the console, in both themes and at both widths, through axe-core; and what a narrow screen shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.pages import ROOT
from tests.records.console.place import Log, Running, write_morning
from tests.records.console.test_browser import opened, visit

AXE = ROOT / ".cache/node/node_modules/axe-core/axe.min.js"
VIEWS = (
    "live", "session", "session/session-1", "hooks", "hooks/guard", "replay", "coverage", "health", "decision/5",
    "inbox",
)  # fmt: skip
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
HOOKS = """
from hookline import Hooks
from hookline.guards import commands

hooks = Hooks()
hooks.add(commands.block(["ls *"]))
"""


@pytest.fixture
def console(log: Log, tmp_path: Path, start: Callable[..., Running]) -> Running:
    """A morning's log, with a replay that may be run."""
    write_morning(log)
    (tmp_path / "hooks.py").write_text(HOOKS)
    return start(log.path, "--hooks", tmp_path / "hooks.py", "--replay")


def found_by_axe(page: Page) -> list[str]:
    """What axe-core has against the page as it is now."""
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [f"{one['id']}: {node['target'][0]}" for one in found["violations"] for node in one["nodes"]]


def test_axe_has_no_findings_on_any_view(console: Running, page: Page) -> None:
    """Light and dark, wide and narrow; nothing is wider than the screen."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make node_modules` fetches it")
    opened(page, console, "replay")
    page.locator("main button.primary").click()
    expect(page.locator("table.flips")).to_be_visible()
    findings = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            for view in VIEWS:
                visit(page, view)
                place = f"{view}, {scheme}, {size['width']}"
                findings += [f"{place}: {one}" for one in found_by_axe(page)]
                if page.evaluate("() => document.documentElement.scrollWidth > innerWidth"):
                    findings.append(f"{place}: wider than the screen")

    assert findings == []


def test_numbers_stay_on_a_narrow_screen(console: Running, page: Page) -> None:
    """Dates and titles do not lie over each other; hooks and coverage keep their figures in sight."""
    opened(page, console)
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    visit(page, "session")
    title, date = (
        page.locator(f".sessions tbody tr {name}").first.bounding_box() for name in (".session-title", ".c-time")
    )
    assert title is not None
    assert date is not None
    assert title["y"] >= date["y"] + date["height"] or date["y"] >= title["y"] + title["height"]

    for view, cells in (("hooks", ".hooks tbody tr:first-child td.num"), ("coverage", ".coverage tbody td.num")):
        visit(page, view)
        shown = [box for cell in page.locator(cells).all() if (box := cell.bounding_box()) is not None]
        assert len(shown) >= 2, view
        assert all(box["x"] + box["width"] <= NARROW["width"] for box in shown), view
