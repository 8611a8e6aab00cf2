"""The walks of the architecture page are the ways that events really take."""

import re
from collections.abc import Iterator

import pytest

from hookline.settings import watcher
from tests.pages import ROOT
from tools.walks import WALKS, Trace, own_agent, python_hook, sdk_run, settings_command, traced

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
TITLES = {
    "A Python hook": python_hook,
    "A settings command": settings_command,
    "Our agent": own_agent,
    "An SDK-driven run": sdk_run,
}


def listed(title: str) -> Iterator[str]:
    """The modules that a walk's numbered list names."""
    section = PAGE.read_text().partition(f"### {title}\n")[2].partition("\n#")[0]
    for line in section.splitlines():
        if re.match(r"\d+\. ", line):
            said = line.partition(":")[0] if ":" in line else line
            yield from re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", said)


@pytest.mark.parametrize("title", TITLES)
async def test_a_walk_passes_the_modules_the_page_lists(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that the code has left behind fails here; so does a walk without a list."""
    if TITLES[title] is sdk_run:
        pytest.importorskip("claude_agent_sdk", reason="needs `hookline[claude]`, as `make test-all` has")
    monkeypatch.setattr(watcher, "_FRESH", watcher._FRESH)  # a walk changes it, in a process of its own
    trace: Trace = await traced(TITLES[title])
    names = list(listed(title))

    assert len(names) >= 5
    assert [name for name in names if name not in trace.modules] == []


def test_every_walk_is_on_the_page() -> None:
    """The script and the page have the same walks."""
    assert tuple(TITLES.values()) == WALKS
