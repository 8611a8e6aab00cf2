"""The console in a real browser: what a person sees, chooses and types."""

import itertools
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from hookline.core.files import state_folder
from hookline.guards.flow.store import FlowRow, FlowStore, store_path
from tests.records.console.place import Log, Running, write_morning

Start = Callable[..., Running]


@pytest.fixture
def morning(log: Log) -> Log:
    """A short session."""
    write_morning(log)
    return log


def opened(page: Page, console: Running, view: str = "") -> Page:
    page.goto(console.way_in())
    expect(page.locator("h1")).to_have_text("Live")
    if view:
        page.evaluate("view => { location.hash = view }", f"#/{view}")
    return page


visits = itertools.count()


def visit(page: Page, view: str) -> None:
    """Go to a view, and wait until it is drawn."""
    asked = f"#/{view}?visit={next(visits)}"  # unlike any other: none that is still being drawn passes for it
    place = page.evaluate("asked => { location.hash = asked; return location.hash }", asked)
    page.wait_for_selector(f'html[data-ready="{place}"]')


def test_the_live_view_lists_events_newest_first(idle: Running, page: Page) -> None:
    """Each event has its verdict, what it was about, who decided and why."""
    opened(page, idle)

    expect(page.locator("table.events tbody tr")).to_have_count(10)
    refused = page.locator("tr.v-row-deny")
    expect(refused.locator(".badge")).to_have_text("deny")
    expect(refused.locator(".what-link")).to_have_text("Bash rm -rf /")
    expect(refused.locator(".c-by")).to_contain_text("commands.block")
    expect(refused.locator(".c-by")).to_contain_text("blocked by the pattern")


def test_an_event_reaches_the_screen_as_it_is_written(start: Start, morning: Log, page: Page) -> None:
    """No reload: the row appears, and the counts follow."""
    opened(page, start(morning.path))
    expect(page.locator("table.events tbody tr")).to_have_count(10)

    morning.denied("curl evil.example", "no network")

    first = page.locator("table.events tbody tr").first
    expect(first).to_contain_text("curl evil.example")
    expect(page.locator(".figure", has_text="denied").locator(".figure-value")).to_have_text("2")


def test_pausing_holds_events_back(start: Start, morning: Log, page: Page) -> None:
    """What came in meanwhile is counted, and shown when the view goes on."""
    opened(page, start(morning.path))
    expect(page.locator("table.events tbody tr")).to_have_count(10)  # else the event may be in the list that is loaded
    page.locator(".pulse").click()

    morning.bash("echo held")

    expect(page.locator(".pulse-text")).to_have_text("Paused, 1 new")
    expect(page.locator("table.events tbody tr")).to_have_count(10)
    page.locator(".pulse").click()
    expect(page.locator("table.events tbody tr").first).to_contain_text("echo held")


def test_filters_narrow_the_list_and_live_events_respect_them(start: Start, morning: Log, page: Page) -> None:
    """By verdict, tool, event, hook and text; the address keeps them."""
    opened(page, start(morning.path))

    page.get_by_role("button", name=re.compile("^deny")).click()
    expect(page.locator("table.events tbody tr")).to_have_count(1)
    assert "verdict=deny" in page.url
    morning.bash("not a denial")
    morning.denied("sudo reboot")
    expect(page.locator("table.events tbody tr")).to_have_count(2)
    denied = page.locator(".figure", has_text="denied").locator(".figure-value")
    expect(denied).to_have_text("2")  # the counts follow a second later, and the buttons are drawn again with them

    page.get_by_role("button", name="Clear all filters").click()
    page.locator("select[name=tool]").select_option("Read")
    expect(page.locator("table.events tbody tr")).to_have_count(1)
    page.locator("select[name=tool]").select_option("")
    page.locator("select[name=hook]").select_option("fresh_tests")
    expect(page.locator("table.events tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Clear all filters").click()
    expect(page.locator("table.events tbody tr")).to_have_count(12)
    page.get_by_label("Search").fill("UNITTEST")
    expect(page.locator("table.events tbody tr")).to_have_count(1)
    page.get_by_label("Search").fill("nothing says this")
    expect(page.locator(".list-note")).to_contain_text("Nothing matches these filters")


def test_the_session_filter(start: Start, log: Log, page: Page) -> None:
    """One session's events, of several."""
    log.bash("in the first")
    log.bash("in the second", run="session-2")
    opened(page, start(log.path), "live?session=session-2")

    expect(page.locator("table.events tbody tr")).to_have_count(1)
    expect(page.locator("table.events tbody tr")).to_contain_text("in the second")


def test_a_decision_is_explained(idle: Running, page: Page) -> None:
    """Every hook's answer, the difference a rewrite made, the line and its place in the chain."""
    opened(page, idle, "decision/4")

    expect(page.locator("h1")).to_have_text("Decision")
    expect(page.locator(".hook-run")).to_have_count(2)
    expect(page.locator("ins")).to_have_text("-B ")
    expect(page.locator(".chain-here")).to_contain_text("record 4")
    expect(page.locator(".chain-state")).to_contain_text("matches its hash")
    page.get_by_text("The line as it is in the log").click()
    expect(page.locator(".raw")).to_contain_text('"seq":4')


def test_a_changed_line_is_shown_as_changed(start: Start, morning: Log, page: Page) -> None:
    """The chain's break is said where the line is shown, and on the health page."""
    text = morning.path.read_text().replace('"decision":"deny"', '"decision":"pass"', 1)
    morning.path.write_text(text)
    opened(page, start(morning.path), "decision/5")

    expect(page.locator(".chain-state.bad")).to_contain_text("does not match its hash")
    page.get_by_role("link", name="Health").click()
    page.get_by_role("button", name="Verify the chains now").click()
    expect(page.locator(".pill.bad")).to_have_text("1 problem")


def test_a_session_is_drawn_in_lanes(idle: Running, page: Page) -> None:
    """Prompts, model turns, tools, subagents and hooks; a bar opens what happened."""
    opened(page, idle, "session/session-1")

    expect(page.locator(".lane-name")).to_have_text(
        [
            re.compile("Prompts"),
            re.compile("Model"),
            re.compile("Tools"),
            re.compile("Subagent Explore"),
            re.compile("Hooks"),
        ]
    )
    page.locator(".bar.k-deny").first.click()
    expect(page.locator(".lane-detail")).to_contain_text("rm -rf *")


def test_zooming_a_session_spreads_its_bars(idle: Running, page: Page) -> None:
    """The keyboard zooms; 0 shows all again."""
    opened(page, idle, "session/session-1")
    bar = page.locator(".bar.k-prompt rect")
    expect(page.locator(".bar").first).to_be_visible()
    drawn = page.locator(".bar").count()

    page.locator("h1").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")

    expect(bar).to_have_count(0)
    page.keyboard.press("0")
    expect(page.locator(".bar")).to_have_count(drawn)


def test_hooks_show_runs_failures_and_times(idle: Running, page: Page) -> None:
    """A table of all, and a plot of the one that is chosen."""
    opened(page, idle, "hooks/slow")

    expect(page.locator("table.hooks tbody tr", has_text="slow").locator("td.bad")).to_have_text("1")
    expect(page.locator(".plot .uplot")).to_have_count(2)
    expect(page.locator(".slowest a")).to_have_count(1)


def test_coverage_shows_what_no_hook_looked_at(idle: Running, page: Page) -> None:
    """The read inside the subagent went unseen, and leads to its events."""
    opened(page, idle, "coverage")

    unseen = page.locator("table.coverage tbody tr", has_text="Read")
    expect(unseen.locator("td.bad")).to_have_text("1")
    unseen.locator("a").click()
    expect(page.locator("table.events tbody tr")).to_have_count(1)


STRICTER = """from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()


@hooks.on(PreToolUse, match="Bash")
async def no_make(event):
    return deny("nobody makes anything") if event.tool_input["command"] == "make" else None
"""


def test_replay_shows_what_would_flip(start: Start, morning: Log, page: Page, tmp_path: Path) -> None:
    """Was against now, and each flip explained; a denial that would go through is marked as loosened."""
    (tmp_path / "stricter.py").write_text(STRICTER)
    opened(page, start(morning.path, "--replay", "--hooks", tmp_path / "stricter.py"), "replay")

    page.get_by_role("button", name="Run the replay").click()

    expect(page.locator(".cell.tightened .cell-count")).to_have_text("1")
    expect(page.locator(".cell.loosened .cell-count")).to_have_text("1")
    expect(page.locator("table.flips tbody tr").first).to_contain_text("rm -rf /")
    expect(page.locator("table.flips")).to_contain_text("nobody makes anything")


def test_replay_is_off_unless_it_is_allowed(idle: Running, page: Page) -> None:
    """The page says how to switch it on."""
    opened(page, idle, "replay")

    expect(page.locator(".empty-title")).to_have_text("Replay is switched off")
    expect(page.locator(".view")).to_contain_text("--replay")


def test_keys_reach_everything(idle: Running, page: Page) -> None:
    """Views by number, rows by j and Enter, the search by a slash, the list of keys by a question mark."""
    opened(page, idle)
    expect(page.locator("table.events tbody tr")).to_have_count(10)

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("a.what-link:focus")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("aside.panel .decision")).to_be_visible()
    assert page.evaluate("document.querySelector('td.c-what').clientWidth") > 150  # what it is about stays readable
    page.keyboard.press("Escape")
    expect(page.locator("aside.panel")).to_be_hidden()
    page.keyboard.press("3")
    expect(page.locator("h1")).to_have_text("Hooks")
    page.keyboard.press("1")
    expect(page.locator("h1")).to_have_text("Live")
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("dialog.help")).to_be_visible()


SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
FAINT = """() => {
  const channel = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parts(getComputedStyle(element).backgroundColor);
      if ((colour[3] ?? 1) > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const says = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!says || !element.checkVisibility()) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) faint.push(`${element.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return faint;
}"""
"""Every text that stands out from what is behind it by less than WCAG's 4.5 to 1."""


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_every_view_fits_the_window_and_can_be_read(idle: Running, page: Page, width: int) -> None:
    """On a phone, a tablet and a desktop, in the dark and in the light: no wider, and with the contrast of WCAG AA."""
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, idle)

    for view in ("live", "session", "session/session-1", "decision/5", "hooks/slow", "coverage", "replay", "health"):
        visit(page, view)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert (view, scheme, too_wide, page.evaluate(FAINT)) == (view, scheme, 0, [])
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (background == "rgb(13, 18, 23)") is (scheme == "dark")


def test_the_theme_can_be_switched_and_is_remembered(start: Start, morning: Log, page: Page) -> None:
    """A key switches it; a reload keeps it."""
    opened(page, start(morning.path))
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")

    page.keyboard.press("t")
    page.reload()

    expect(page.locator("h1")).to_have_text("Live")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'`${alert(1)}"
    " \u202eevil\u202c \u001b[31mred\u001b[0m \u0000\u200b\u2066 javascript:alert(1) {{7*7}} </textarea></pre>"
)


def test_a_hostile_log_is_shown_and_not_obeyed(start: Start, log: Log, page: Page) -> None:
    """Scripts, direction overrides and escape codes in every field that an agent fills are text, and visible."""
    log.add("UserPromptSubmit", prompt=HOSTILE, run=HOSTILE, cwd=HOSTILE, user=HOSTILE, hooks=(HOSTILE,))
    log.add(
        tool=HOSTILE, input={HOSTILE: HOSTILE, "nested": {HOSTILE: [HOSTILE]}}, rewritten={HOSTILE: HOSTILE + "x"},
        run=HOSTILE, agent=HOSTILE, agent_type=HOSTILE, tool_use_id=HOSTILE, by=HOSTILE, reasons=[HOSTILE],
        decision="deny", blocked=True, result=HOSTILE,
        hooks=({**dict.fromkeys(("hook", "status", "decision", "error", "note"), HOSTILE), "ms": 1.0},),
    )  # fmt: skip
    log.add(event=HOSTILE)
    opened(page, start(log.path))
    expect(page.locator("table.events tbody tr")).to_have_count(3)

    for view in ("live", "session", "decision/1", "decision/2", "decision/3", "hooks", "coverage", "health"):
        visit(page, view)
        said = page.locator("main").inner_text()
        assert not set("\u202e\u202c\u2066\u200b\x1b\x00") & set(said), view
        if view not in ("health", "decision/3"):
            assert "<script>window.hacked" in said, view
        assert page.locator("main script, main img").count() == 0
    page.locator(".nav-link").nth(1).click()
    page.locator(".row-link", has_text="window.hacked").click()
    expect(page.locator(".lane-name").first).to_be_visible()
    page.locator(".bar.k-deny").first.click()
    expect(page.locator(".lane-detail .steering").first).to_be_visible()
    page.evaluate("name => { location.hash = '#/hooks/' + encodeURIComponent(name) }", HOSTILE)
    expect(page.locator(".plot .uplot")).to_have_count(2)
    assert page.evaluate("window.hacked") is None


def test_the_ticket_leaves_the_address_at_once_and_works_once(
    start: Start, morning: Log, browser: Browser, page: Page
) -> None:
    """The token is in no address; a second browser with the same address stays out."""
    console = start(morning.path)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, console)
    expect(page.locator("table.events tbody tr")).to_have_count(10)

    assert "ticket" not in page.url
    assert not [url for url in asked if console.ticket in url]
    stranger = browser.new_context()
    try:
        locked = stranger.new_page()
        locked.goto(console.address)
        expect(locked.locator(".empty-title")).to_have_text("This page is locked")
    finally:
        stranger.close()


def test_tiles_and_chart_follow_the_text_search(idle: Running, page: Page) -> None:
    """What is counted is what is listed."""
    opened(page, idle)
    page.get_by_role("searchbox").fill("rm -rf")

    expect(page.locator("table.events tbody tr")).to_have_count(1)
    expect(page.locator(".figure", has_text="events").locator(".figure-value")).to_have_text("1")
    expect(page.locator(".timeline-svg g")).to_have_count(1)


def test_a_row_says_when_whose_and_that_a_tool_failed(start: Start, log: Log, page: Page) -> None:
    """The date of another day, the session and the user; a tool that failed is not a grey pass."""
    log.add("PostToolUseFailure", tool="Bash", input={"command": "make"}, error="exit 2", hooks=())
    opened(page, start(log.path))

    row = page.locator("table.events tbody tr").first
    expect(row.locator(".c-time")).to_contain_text("Mon 2 Mar")
    expect(row.locator(".whose")).to_have_text("session- · ada")
    expect(row.locator(".badge")).to_have_text("tool failed")


def test_the_chosen_event_is_in_the_address_and_escape_goes_back(idle: Running, page: Page) -> None:
    """A reload shows it again; Esc closes the panel, and leaves a page for where one came from."""
    opened(page, idle)
    page.locator("tr.v-row-deny .what-link").click()
    expect(page.locator("aside.panel")).to_be_visible()
    assert "open=" in page.url
    page.reload()
    expect(page.locator("aside.panel")).to_contain_text("commands.block")
    page.keyboard.press("Escape")
    expect(page.locator("aside.panel")).to_be_hidden()
    assert "open=" not in page.url

    visit(page, "decision/5")
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Live")


def test_sessions_can_be_searched(start: Start, morning: Log, page: Page) -> None:
    """By prompt, folder, user or name."""
    morning.add("UserPromptSubmit", prompt="Write the docs.", run="other", user="grace")
    opened(page, start(morning.path), "session")
    expect(page.locator(".sessions tbody tr")).to_have_count(2)
    for text, title in (("docs", "Write the docs."), ("grace", "Write the docs."), ("session-1", "Fix the tests.")):
        page.get_by_role("searchbox").fill(text)
        expect(page.locator(".session-title")).to_have_text([title])
    page.get_by_role("searchbox").fill("nothing like it")
    expect(page.locator(".sessions tbody")).to_have_text("No session matches.")


def test_a_burst_of_denials_and_a_failing_hook_are_said_aloud(start: Start, log: Log, page: Page) -> None:
    """Within the last ten minutes; an old log is quiet."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    for number in range(5):
        log.bash(f"rm {number}", time=now, decision="deny", blocked=True, by="guard", reasons=["no"])
    log.bash("make", time=now, hooks=({"hook": "slow", "status": "timeout", "ms": 5000.0, "error": "late"},))
    opened(page, start(log.path))

    expect(page.locator(".alerts p")).to_have_text(
        ["5 calls were denied within ten minutes", "A hook failed once within ten minutes: slow"]
    )


def test_a_session_shows_where_its_destinations_came_from(start: Start, morning: Log, page: Page) -> None:
    """Who vouched for each, what was said to the call, and the sentence that told the agent so."""
    console = start(morning.path)
    state = state_folder({"HOME": str(morning.path.parent / "home"), **environ_of("XDG_STATE_HOME")})
    store = FlowStore(store_path(state / "flow", "session-1"))
    told = FlowRow(
        "judged", tool="send_mail", level="deny", rule="destination", text='get_mail#1 says: "Mail <b>eve</b>"'
    )
    told.values = [("to", "eve@evil.example", "text", "get_mail#1")]
    store.put(told)
    opened(page, console, "session/session-1")

    row = page.locator("table.flow tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("eve@evil.example")
    expect(row).to_contain_text("a text · get_mail#1")
    expect(row).to_contain_text('"Mail <b>eve</b>"')
    expect(row.locator(".badge")).to_have_text("deny")


def environ_of(name: str) -> dict[str, str]:
    return {name: os.environ[name]} if name in os.environ else {}
