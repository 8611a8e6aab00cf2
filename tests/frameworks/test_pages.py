"""The pages about frameworks tell the truth: their blocks run in the framework's own environment."""

from pathlib import Path

import pytest

from tests.frameworks.plays import PAGES, played
from tests.pages import ROOT, Page, alike, blocks, steady
from tools.frameworks import ENVIRONMENTS, is_ready


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pages_blocks_run_and_print_what_it_says(path: Path, tmp_path: Path) -> None:
    """A reader who copies the page's blocks in order sees what the page shows."""
    environment = PAGES[path]
    if not is_ready(environment):
        pytest.skip(f"the environment `{environment}` is not there; run `make frameworks`")
    page = Page(path, tmp_path, blocks(path.read_text()))
    runnable = [index for index, block in enumerate(page.blocks) if block.language == "python"]
    page.loop.close()

    for index, printed in zip(runnable, played(environment, str(path)), strict=True):
        expected = page.expected(index)
        if expected is not None:
            same = alike if expected.comments["prints"] == "…" else str.__eq__
            assert same(steady(expected.text), steady(printed)), f"{path}:{expected.line}: prints\n{printed}"


def test_every_framework_has_a_page() -> None:
    """Somebody who uses a framework finds how to use Hookline in it."""
    assert set(PAGES.values()) == set(ENVIRONMENTS)
