"""US-3 (seeds/004): how long tools take and how often they fail, without holding the agent up."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from pathlib import Path

import pytest

from hookline import Hooks, Verdict
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.core.engine import Notice
from hookline.records.telemetry import Metrics
from tests.environ import clean_environ
from tests.stories.playing import WAYS, Played, Story, play

HOOKS_FILE = """
from pathlib import Path

from hookline import Hooks
from hookline.events import SessionEnd
from hookline.records.telemetry import Metrics

hooks = Hooks()
metrics = hooks.observe(Metrics(), inline=True)


@hooks.on(SessionEnd)
async def keep(event):
    Path({path!r}).write_text(metrics.text())
"""


def from_python(folder: Path) -> list[str]:
    (folder / "hooks.py").write_text(HOOKS_FILE.format(path=str(folder / "metrics.txt")))
    return ["--hooks", str(folder / "hooks.py")]


def scraped(metrics: Metrics) -> str:
    """What a metrics backend reads, over its own protocol."""
    server = metrics.serve(port=0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=30) as page:
            text: str = page.read().decode()
            return text
    finally:
        server.close()


@pytest.fixture(scope="module", params=WAYS)
def told_backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Bash runs three times, twice without success, and takes a while; what the backend then knows."""
    folder = tmp_path_factory.mktemp("us3")
    metrics = Metrics()

    def measured(folder: Path) -> Hooks:
        hooks = Hooks()
        hooks.observe(metrics)
        return hooks

    calls = ["sleep 0.2", "exit 3", "exit 4"]
    turns = [{"tools": [["Bash", {"command": call, "description": "d"}]]} for call in calls]
    story = Story(turns=[*turns, {"text": "done"}], hooks=measured, flags=from_python, allowed=("Bash",))
    played: Played = play(request.param, story, folder)
    assert played.results == ["success"]
    text = (folder / "metrics.txt").read_text() if request.param == "run" else scraped(metrics)
    rows = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in rows}


def test_the_duration_of_every_tool_reaches_the_metrics_backend(told_backend: dict[str, float]) -> None:
    """Given hooks before and after a tool, when it runs, then how long it took is what Prometheus scrapes."""
    assert told_backend['hookline_tool_duration_seconds_count{tool="Bash"}'] == 3
    assert told_backend['hookline_tool_duration_seconds_sum{tool="Bash"}'] >= 0.2


def test_the_error_counter_of_a_tool_goes_up_when_it_fails(told_backend: dict[str, float]) -> None:
    """Given a hook on failures, when a tool fails, then the errors are counted by tool name."""
    assert told_backend['hookline_tool_errors_total{tool="Bash"}'] == 2


async def test_a_metrics_backend_that_hangs_does_not_hold_the_agent_up(tmp_path: Path) -> None:
    """The agent comes to its end while the observer is still busy with the first verdict."""
    hooks = Hooks()
    released, heard = threading.Event(), []

    def slow(notice: Notice) -> None:
        released.wait(60)
        heard.append(notice)

    hooks.observe(slow)
    model = Scripted.of({"tools": [["Bash", {"command": "true"}]]}, "done")
    environ = clean_environ(tmp_path)
    agent = Agent(model=model, hooks=hooks, cwd=tmp_path, permission_mode="bypassPermissions", environ=environ)
    try:
        async with asyncio.timeout(30):
            result = await agent.run("go")
            await agent.aclose()
        before = len(heard)
    finally:
        released.set()
        await hooks.aclose()

    assert (result.text, before) == ("done", 0)
    assert next(notice.event.event_name for notice in heard if isinstance(notice, Verdict)) == "SessionStart"
