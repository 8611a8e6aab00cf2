"""A question in a real browser, on a phone and on a desk: by its link, and in the console."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from hookline import Hooks, Verdict, ask
from hookline.events import PreToolUse
from hookline.records.approvals import Inbox
from tests.processes.service.conftest import Desk, desk_for, until
from tests.records.console.conftest import browser, page, window
from tests.records.console.place import Log, Running

__all__ = ["browser", "page", "window"]

PHONE: ViewportSize = {"width": 390, "height": 844}
BEFORE = ["Read src/deploy.py → pass", "Bash git status → pass", "Bash pytest -q → pass"]
Asks = Callable[..., "Asking"]


class Asking:
    """A call that waits for its answer, in a thread."""

    def __init__(self, tool: str, tool_input: dict[str, str]) -> None:
        hooks = Hooks(on_ask=Inbox(hold=120, host="Gemini CLI", before=lambda event: BEFORE))
        hooks.add(PreToolUse, lambda event: ask("Pushing to the main branch is for people."), name="branches.protect")
        event = PreToolUse(session_id="8d1f", cwd="/home/ada/shop", tool_name=tool, tool_input=tool_input)
        self.verdicts: list[Verdict] = []
        self._thread = threading.Thread(target=lambda: self.verdicts.append(hooks.fire_sync(event)))
        self._thread.start()

    def verdict(self) -> Verdict:
        self._thread.join(60)
        return self.verdicts[0]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A service of the test's own, and a person who gets links in a file."""
    with desk_for(tmp_path) as made:
        deliver = tmp_path / "deliver.py"
        deliver.write_text(f"import sys\nopen({str(tmp_path / 'links')!r}, 'a').write(sys.stdin.read() + chr(10))\n")
        people = {"ada": [{"type": "command", "command": [sys.executable, str(deliver)]}]}
        (made.home / ".claude").mkdir()
        (made.home / ".claude" / "settings.json").write_text(json.dumps({"approvals": {"people": people}}))
        monkeypatch.setenv("HOOKLINE_SERVICE", made.name)
        monkeypatch.setenv("HOME", str(made.home))
        yield made


def link(desk: Desk, number: int = 1) -> str:
    file = desk.base / "links"
    until(lambda: file.exists() and len(file.read_text().splitlines()) >= number)
    return str(json.loads(file.read_text().splitlines()[number - 1])["link"])


def shot(page: Page, name: str) -> None:
    """Keep a picture, where one was asked for."""
    if folder := os.environ.get("HOOKLINE_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def test_a_question_on_a_phone(desk: Desk, page: Page) -> None:
    """All of it fits the width, the buttons are in sight, and a yes lets the call run."""
    asking = Asking(
        "Bash", {"command": "git push --force-with-lease origin main && gh release create v1.4 --notes 'x'"}
    )
    page.set_viewport_size(PHONE)
    page.goto(link(desk))

    for text in ("git push --force-with-lease", "Pushing to the main branch", "branches.protect", "Gemini CLI",
                 "pytest -q", "You answer as ada"):  # fmt: skip
        expect(page.locator("main")).to_contain_text(text)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    yes = page.get_by_role("button", name="Let it run once")
    box = yes.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert box["y"] + box["height"] <= 844
    shot(page, "question-phone")
    page.emulate_media(color_scheme="dark")
    shot(page, "question-phone-dark")
    yes.click()
    expect(page.locator(".badge")).to_contain_text("yes")
    approval = asking.verdict().approval
    assert approval is not None
    assert (approval.by, approval.how, approval.granted) == ("ada", "page", True)


def test_a_change_is_shown_as_a_diff_on_a_desk(desk: Desk, page: Page) -> None:
    """Removed and added lines; a no reaches the model with the name of who said so."""
    old, new = "def price(cart):\n    return sum(cart)\n", "def price(cart):\n    return sum(cart) * 0.9\n"
    asking = Asking("Edit", {"file_path": "src/price.py", "old_string": old, "new_string": new})
    page.goto(link(desk))
    expect(page.locator("pre.diff .removed")).to_have_text("-    return sum(cart)\n", use_inner_text=False)
    expect(page.locator("pre.diff .added")).to_contain_text("* 0.9")
    shot(page, "question-desk")
    page.get_by_role("button", name="No", exact=True).click()

    assert asking.verdict().reason.startswith("not approved: ada said no (page, question A-")
    expect(page.locator(".badge")).to_contain_text("no, by ada (page)")


@pytest.mark.parametrize("size", [PHONE, {"width": 1440, "height": 900}], ids=["phone", "desk"])
def test_the_console_lists_and_answers(desk: Desk, page: Page, size: ViewportSize) -> None:
    """The open one with its buttons; afterwards it is among the answered."""
    asking = Asking("Bash", {"command": "terraform apply"})
    link(desk)
    log = Log(desk.base / "audit.jsonl")
    log.bash("ls")
    console = Running(desk.base, [str(log.path)], HOOKLINE_SERVICE=desk.name)
    try:
        page.set_viewport_size(size)
        page.goto(console.way_in())
        page.evaluate("() => { location.hash = '#/inbox' }")
        expect(page.locator("article.question")).to_contain_text("terraform apply")
        expect(page.locator(".sub-head")).to_have_text("1 open")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        shot(page, f"console-inbox-{size['width']}")
        page.get_by_role("button", name="Let it run once").click()
        verdict = asking.verdict()
        expect(page.locator(".sub-head")).to_have_text("nothing open")
        expect(page.locator("details.card > summary")).to_contain_text("yes, and it ran")
    finally:
        page.goto("about:blank")  # it would go on asking
        console.stop()

    assert verdict.approval is not None
    assert (verdict.approval.how, verdict.blocked) == ("console", False)
