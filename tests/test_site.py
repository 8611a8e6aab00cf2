"""The documentation as a site, opened from disk in a real browser: its search works, its theme can be switched."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.pages import ROOT
from tests.records.console.place import ARGUMENTS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(argv, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True, timeout=250)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here; install Debian's package `chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(site: Path, browser: Browser) -> Iterator[Page]:
    """Its first page, without network, in a profile of its own; whatever it asks of the network fails the test."""
    asked: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 900}, offline=True) as context:
        made = context.new_page()
        made.set_default_timeout(60_000)
        made.on("request", lambda request: asked.append(request.url) if request.url.startswith("http") else None)
        made.goto((site / "index.html").as_uri())
        yield made
    assert asked == []


def search(page: Page, text: str) -> None:
    for _ in range(300):  # the key works once the page's script does
        page.keyboard.press("/")
        if page.locator("input.md-search__input:focus").count():
            break
        page.wait_for_timeout(100)
    page.keyboard.type(text)


def test_force_push_finds_the_page_on_force_pushes(page: Page) -> None:
    """As people type it."""
    search(page, "force push")

    expect(page.locator(".md-search-result__link").first).to_contain_text("force-pushing")


def test_the_search_works_from_disk(page: Page) -> None:
    """A word of one page leads to that page."""
    search(page, "coverage")

    found = page.locator(".md-search-result__link", has_text="See it").first
    expect(found).to_be_visible(timeout=60_000)
    found.click()
    expect(page.locator("h1").first).to_contain_text("See it", timeout=60_000)


def test_the_theme_can_be_switched(page: Page) -> None:
    """From light to dark and back."""
    scheme = page.locator("body")
    before = scheme.get_attribute("data-md-color-scheme")

    page.locator("label.md-header__button[title^='Switch to']:visible").click()

    expect(scheme).not_to_have_attribute("data-md-color-scheme", before or "", timeout=60_000)
