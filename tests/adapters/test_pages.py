"""The pages about frameworks tell the truth: their blocks run in the framework's own environment."""

import json
import re
from pathlib import Path

import pytest

from tests.pages import ROOT, Page, alike, blocks, steady
from tools.frameworks import ENVIRONMENTS, is_ready, run_in

MARK = re.compile(r"<!-- environment: ([\w-]+) -->")
PAGES = {path: found[1] for path in sorted((ROOT / "docs").rglob("*.md")) if (found := MARK.search(path.read_text()))}
RUNNER = """
import ast, asyncio, contextlib, inspect, io, json, sys
printed, names, loop = [], {"__name__": "__main__"}, asyncio.Runner()
for text in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = eval(compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.iscoroutine(result):
            loop.run(result)
    printed.append(out.getvalue())
print("PRINTED " + json.dumps(printed))
"""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pages_blocks_run_and_print_what_it_says(path: Path, tmp_path: Path) -> None:
    """A reader who copies the page's blocks in order sees what the page shows."""
    environment = PAGES[path]
    if not is_ready(environment):
        pytest.skip(f"the environment `{environment}` is not there; run `make frameworks`")
    page = Page(path, tmp_path, blocks(path.read_text()))
    runnable = [index for index, block in enumerate(page.blocks) if block.language == "python"]
    texts = json.dumps([page.blocks[index].text for index in runnable])
    done = run_in(environment, "-c", RUNNER, cwd=tmp_path, input=texts)
    page.loop.close()
    lines = [line for line in done.stdout.splitlines() if line.startswith("PRINTED ")]

    assert lines, done.stderr[-4000:]
    for index, printed in zip(runnable, json.loads(lines[-1].removeprefix("PRINTED ")), strict=True):
        expected = page.expected(index)
        if expected is not None:
            same = alike if expected.comments["prints"] == "…" else str.__eq__
            assert same(steady(expected.text), steady(printed)), f"{path}:{expected.line}: prints\n{printed}"


def test_every_framework_has_a_page() -> None:
    """Somebody who uses a framework finds how to use Hookline in it."""
    assert set(PAGES.values()) == set(ENVIRONMENTS)
