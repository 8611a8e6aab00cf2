"""What the console's tests share: logs to look at, a console as a real process, and a real browser."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.console.place import ARGUMENTS, Log, Running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "audit.jsonl")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts `hookline console` on a log, and ends it after the test."""
    running: list[Running] = []

    def begin(*argv: str | Path) -> Running:
        running.append(Running(tmp_path, [str(word) for word in argv]))
        return running[-1]

    yield begin
    for one in running:
        one.stop()


@pytest.fixture(scope="module")  # its event loop runs for as long as it lives: no async test may come in between
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here; install Debian's package `chromium`")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A window of its own; a page that logs an error or asks for anything but the console fails its test."""
    made = browser.new_context(viewport={"width": 1440, "height": 900})
    made.set_default_timeout(60_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    problems: list[str] = []
    made = context.new_page()
    made.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))
            else problems.append(request.url)
        ),
    )
    yield made
    assert problems == []
