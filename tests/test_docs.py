"""README and documentation tell the truth: their blocks are executed, their links lead somewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import ROOT, Block, Page, blocks, broken_links, slug, steady
from tests.tables import each

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ELSEWHERE = "<!-- environment: "  # pages for a framework: tests/frameworks/test_pages.py runs them in its environment
BY_ITSELF = ROOT / "docs/how-to/mcp-gateway.md"  # tests/hosts/gateway/test_page.py: the MCP SDK starts eight times
EXECUTED = [
    path for path in PAGES if path.name not in ("CHANGELOG.md", "CONTRIBUTING.md") and ELSEWHERE not in path.read_text()
]


def cases() -> Iterator[object]:
    for path in EXECUTED:
        if path == BY_ITSELF:
            continue
        name = str(path.relative_to(ROOT))
        for index, block in enumerate(blocks(path.read_text())):
            if block.runs:
                yield pytest.param(path, index, id=f"{name}:{block.line}")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Page]]:
    opened = {path: Page(path, tmp_path_factory.mktemp(path.stem), blocks(path.read_text())) for path in EXECUTED}
    yield opened
    for page in opened.values():
        page.loop.close()


@pytest.mark.parametrize("path, index", list(cases()))
def test_the_block_runs_and_prints_what_the_page_says(path: Path, index: int, pages: dict[Path, Page]) -> None:
    """A reader who copies the page's blocks in order sees what the page shows."""
    page = pages[path]
    if "skip" in page.blocks[index].comments:
        pytest.skip(page.blocks[index].comments["skip"])

    for module in ("claude_agent_sdk", "pyarrow"):
        if any(module in block.text for block in page.blocks[: index + 1]):
            pytest.importorskip(module, reason="needs an extra that `make test-all` has")

    page.run_to(index)


@each("path", PAGES)
def test_relative_links_lead_somewhere(path: Path) -> None:
    """Every link to a file or a heading of the project finds it."""
    assert broken_links(path) == []


def shell_blocks() -> Iterator[tuple[str, Block]]:
    for path in EXECUTED:
        for block in blocks(path.read_text()):
            if block.language in ("sh", "bash", "console"):
                yield str(path.relative_to(ROOT)), block


def test_every_shell_block_runs_or_says_why_not() -> None:
    """A line that no test runs says what does, or what it would need."""
    hosts = "docs/hosts/"  # the next test runs these
    silent = [
        f"{name}:{block.line}"
        for name, block in shell_blocks()
        if not block.runs and "skip" not in block.comments and not name.startswith(hosts)
    ]

    assert silent == []


def test_the_line_of_every_agents_page_installs_and_is_undone(tmp_path: Path) -> None:
    """`hookline install AGENT` as the page writes it, then `uninstall`: the home folder is as it was."""
    installs = [block.text for name, block in shell_blocks() if name.startswith("docs/hosts/")]
    hooks = "from hookline import Hooks\nfrom hookline.guards import commands\n\nhooks = Hooks()\n"
    (tmp_path / "hooks.py").write_text(f"{hooks}hooks.add(commands.block(['rm -rf *']))\n")
    undo = [f"hookline uninstall {text.split()[2]}" for text in installs]
    left = [
        f"{line}: {problem}"
        for install, line in zip(installs, undo, strict=True)
        for problem in _installed(tmp_path, install, line)
    ]

    assert len(installs) >= 18
    assert left == []


def _installed(folder: Path, install: str, undo: str) -> Iterator[str]:
    """What is wrong with installing and undoing it."""
    before = _files(folder)
    run_all(page_of(f"<!-- run -->\n```sh\n{install}```\n", folder))
    if _files(folder) == before:
        yield "nothing was written"
    run_all(page_of(f"<!-- run -->\n```sh\n{undo}\n```\n", folder))
    if _files(folder) != before:
        yield f"left behind: {sorted(_files(folder) ^ before)}"


def _files(folder: Path) -> set[str]:
    """The files in a home folder, but for Hookline's own state."""
    return {str(path) for path in folder.rglob("*") if path.is_file() and not {".local", ".cache"} & set(path.parts)}


# ------------------------------------------------------------------------------------------ the check can fail


def page_of(markdown: str, folder: Path) -> Page:
    return Page(Path("page.md"), folder, blocks(markdown))


def run_all(page: Page) -> None:
    try:
        for index in range(len(page.blocks)):
            page.run_to(index)
    finally:
        page.loop.close()


def test_blocks_share_a_namespace_and_may_await(tmp_path: Path) -> None:
    """A later block sees the names of an earlier one; `await` works at the top, `asyncio.run` too."""
    page = page_of(
        "```python\nimport asyncio\nx = 1\n```\n"
        "```python\nawait asyncio.sleep(0)\nprint(x)\n```\n"
        "<!-- prints -->\n```text\n1\n```\n"
        "```python\nif __name__ == '__main__':\n    print(asyncio.run(asyncio.sleep(0, 2)))\n```\n"
        "<!-- prints -->\n```text\n2\n```\n",
        tmp_path,
    )

    run_all(page)


def test_another_output_than_the_page_shows_fails(tmp_path: Path) -> None:
    """The comparison is exact but for durations."""
    page = page_of("```python\nprint('3.2 ms no')\n```\n\n<!-- prints -->\n```text\n0.1 ms yes\n```\n", tmp_path)

    with pytest.raises(AssertionError, match=r"page\.md:7: prints otherwise"):
        run_all(page)


def test_an_ellipsis_stands_for_anything_where_the_page_says_so(tmp_path: Path) -> None:
    """`prints: …` is for folders and times; all around it is still compared."""
    shown = "```python\nprint('a /tmp/x b')\n```\n\n<!-- prints: … -->\n```text\na … {}\n```\n"

    run_all(page_of(shown.format("b"), tmp_path))
    with pytest.raises(AssertionError, match="prints otherwise"):
        run_all(page_of(shown.format("c"), tmp_path))


def test_a_failing_block_fails_at_the_pages_own_line(tmp_path: Path) -> None:
    """The traceback names the page and the line in it."""
    page = page_of("# Title\n\n```python\nx = 1\nx / 0\n```\n", tmp_path)

    with pytest.raises(ZeroDivisionError) as caught:
        run_all(page)

    last = caught.traceback[-1]
    assert (Path(last.path).name, last.lineno + 1) == ("page.md", 5)


def test_shell_blocks_run_only_when_asked_and_see_written_files(tmp_path: Path) -> None:
    """`run` runs in the page's folder, `run: exit N` expects that exit code, `file: NAME` writes."""
    page = page_of(
        '<!-- file: a/b.json -->\n```json\n{"a": 1}\n```\n'
        "```sh\nexit 9\n```\n"
        "<!-- run -->\n```sh\ncat a/b.json\n```\n"
        '<!-- prints -->\n```text\n{"a": 1}\n```\n'
        "<!-- run: exit 2 -->\n```sh\nexit 2\n```\n",
        tmp_path,
    )

    run_all(page)


def test_a_shell_block_with_another_exit_code_fails(tmp_path: Path) -> None:
    """A command that fails on the page fails the test, with its output."""
    page = page_of("<!-- run -->\n```sh\necho no; exit 3\n```\n", tmp_path)

    with pytest.raises(AssertionError, match="exit 3\nno"):
        run_all(page)


def test_links_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    """A missing file and a missing heading are told with their line; code and web addresses are left alone."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Top words\n[a](page.md#top-words) [b](gone.md) `[c](x.md)`\n"
        "[d](#nowhere) [e](https://example.com/)\n```text\n[f](y.md)\n```\n"
    )

    assert broken_links(page) == [
        "page.md:2: `gone.md` leads to no file",
        "page.md:3: `#nowhere` leads to no heading",
    ]


def test_durations_and_trailing_space_do_not_count() -> None:
    """Two runs of one example differ in these only."""
    assert steady("allow   0.1 ms  x \n") == steady("allow  12.34 ms  x")
    assert steady("within 5 s") != steady("within 6 s")
    assert slug("What `it` reads like, now") == "what-it-reads-like-now"
