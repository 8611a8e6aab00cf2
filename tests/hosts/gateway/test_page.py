"""The gateway's page, run as it stands: a server and a client of the official SDK, started for each of its blocks."""

from pathlib import Path

from tests.pages import ROOT, Page, blocks


def test_the_pages_blocks_run_and_print_what_it_says(tmp_path: Path) -> None:
    """A reader who copies them in order sees what the page shows."""
    path = ROOT / "docs/how-to/mcp-gateway.md"
    page = Page(path, tmp_path, blocks(path.read_text()))
    ran = [index for index, block in enumerate(page.blocks) if block.runs]
    for index in ran:
        page.run_to(index)
    page.loop.close()

    assert len(ran) > 5
