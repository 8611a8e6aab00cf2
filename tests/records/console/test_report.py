"""A report is one file: it works from disk, without a server, and obeys nothing that an agent wrote."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from hookline.cli.main import main
from hookline.records.console.report import bundle, report
from tests.records.console.place import Log
from tests.records.console.test_browser import HOSTILE, morning, visit

__all__ = ["morning"]  # a fixture
VIEWS = ("live", "session", "session/session-1", "decision/5", "hooks/slow", "coverage", "replay", "health")


@pytest.fixture
def opened(morning: Log, page: Page, tmp_path: Path) -> Page:
    file = tmp_path / "report.html"
    file.write_text(report([morning.path]), encoding="utf-8")
    page.context.set_offline(True)
    page.goto(file.as_uri())
    expect(page.locator("h1")).to_have_text("Events")
    return page


def test_it_shows_every_view_from_disk(opened: Page) -> None:
    """The same views, without a server and without network."""
    headings = []
    for view in VIEWS:
        visit(opened, view)
        headings.append(opened.locator("h1").inner_text())

    assert headings == ["Events", "Sessions", "Session", "Decision", "Hooks", "Coverage", "Replay", "Health"]
    expect(opened.locator(".report-note")).to_contain_text("It holds all 10 events")
    expect(opened.locator(".pill.good")).to_contain_text("whole")


def test_its_filters_and_plots_work(opened: Page) -> None:
    """From the data in the file."""
    opened.get_by_role("button", name="deny").click()
    expect(opened.locator("table.events tbody tr")).to_have_count(1)
    visit(opened, "decision/4")
    expect(opened.locator("ins")).to_have_text("-B ")
    visit(opened, "hooks/slow")
    expect(opened.locator(".plot .uplot")).to_have_count(2)
    visit(opened, "session/session-1")
    expect(opened.locator(".bar.k-deny").first).to_be_visible()


def test_it_prints(opened: Page, tmp_path: Path) -> None:
    """On paper there is no navigation, and the text is dark on white."""
    opened.emulate_media(media="print", color_scheme="dark")

    expect(opened.locator(".rail")).to_be_hidden()
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.evaluate("getComputedStyle(document.querySelector('.c-what .tool')).color") == "rgb(23, 32, 42)"


def test_a_hostile_log_makes_a_harmless_report(log: Log, page: Page, tmp_path: Path) -> None:
    """Nothing closes the script that holds the data, and nothing in it runs."""
    ending = "</script><script>window.hacked = 1</script><!--<script>\u2028" + HOSTILE
    log.add(tool=ending, input={ending: ending}, by=ending, reasons=[ending], decision="deny", blocked=True)
    file = tmp_path / "report.html"
    file.write_text(report([log.path]), encoding="utf-8")
    page.goto(file.as_uri())

    expect(page.locator("table.events tbody tr")).to_have_count(1)
    visit(page, "decision/1")

    assert "</script><script>window.hacked" in page.locator("main").inner_text()
    assert page.evaluate("window.hacked") is None


def test_a_big_log_makes_a_bounded_report_that_says_so(log: Log, tmp_path: Path) -> None:
    """What hooks decided is kept before what merely happened; long texts are cut."""
    log.denied("the one that matters")
    log.file.append([log.record("PostToolUse", hooks=(), result="x" * 50_000) for _ in range(300)])

    text = report([log.path], most=100)

    assert "100 of 301 events" in text
    assert "the one that matters" in text
    assert len(text) < 2_500_000


def test_the_command_writes_a_file_or_says_why_not(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also without an argument: the logs in this folder."""
    log.bash("ls")
    monkeypatch.chdir(tmp_path)

    assert main(["audit", "report", "-o", "out.html"]) == 0
    assert "wrote out.html" in capsys.readouterr().out
    assert "<title>Hookline report</title>" in (tmp_path / "out.html").read_text()
    assert main(["audit", "report", "-o", "no/such/folder.html"]) == 1
    assert "no/such/folder.html: cannot be written" in capsys.readouterr().err
    log.path.unlink()
    log.path.with_name("audit.jsonl.head").unlink()
    assert main(["audit", "report"]) == 1
    assert "no audit log in this folder" in capsys.readouterr().err


def test_modules_become_one_script_with_scopes_of_their_own() -> None:
    """Two modules may use one name; what is imported comes first."""
    script = bundle(
        {
            "a.js": 'import { b } from "./b.js";\nconst x = 1;\nb(x);\n',
            "b.js": "const x = 2;\nexport function b(y) {}\n",
        },
        "a.js",
    )

    assert script == (
        'const modules = {};\nmodules["b.js"] = (() => {\nconst x = 2;\nfunction b(y) {}\n\nreturn { b };\n})();\n'
        'modules["a.js"] = (() => {\nconst { b } = modules["b.js"];\nconst x = 1;\nb(x);\n\nreturn {  };\n})();'
    )
