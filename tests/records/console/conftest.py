"""What the console's tests share: logs to look at, a console as a real process, and a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, ViewportSize

from tests.records.console.place import ARGUMENTS, Log, Running, write_morning

DESKTOP: ViewportSize = {"width": 1440, "height": 900}
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


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A console for all tests of a file that only look; its log is that of `write_morning`."""
    folder = tmp_path_factory.mktemp("idle")
    log = Log(folder / "audit.jsonl")
    write_morning(log)
    running = Running(folder, [str(log.path)])
    yield running
    running.stop()


@pytest.fixture(scope="module")  # its event loop runs for as long as it lives: no async test may come in between
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here; install Debian's package `chromium`")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # five seconds are soon over on a busy machine
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[Page]:
    """One for all tests of a file: what a page keeps is kept for its console alone."""
    made = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")  # a light that pulses is painted all the time
    made.set_default_timeout(60_000)
    yield made.new_page()
    made.close()


@pytest.fixture
def page(window: Page) -> Iterator[Page]:
    """An empty page; one that logs an error or asks for anything but the console fails its test.

    That the console still reads its logs (503) is no error: the page says so, and asks again.
    """
    problems: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and "status of 503" not in message.text:
            problems.append(message.text)

    def raised(error: Error) -> None:
        problems.append(str(error))

    def asked(request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:")):
            problems.append(request.url)

    window.context.set_offline(False)
    window.set_viewport_size(DESKTOP)
    window.emulate_media(media="null", color_scheme="light")
    window.on("console", said)
    window.on("pageerror", raised)
    window.on("request", asked)
    yield window
    window.goto("about:blank")  # ends what the page asks of its console
    window.remove_listener("console", said)
    window.remove_listener("pageerror", raised)
    window.remove_listener("request", asked)
    assert problems == []
