"""Counting: right, bounded, safe to read while it counts, and understood by Prometheus' own parser."""

import asyncio
import threading
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from hookline import Hooks, ask, deny, stop
from hookline.core.engine import Verdict
from hookline.events import PostToolUse, PostToolUseFailure
from hookline.records.telemetry import Histogram, Metrics
from hookline.replies import NOTHING
from hookline.testing import bash, tool

START = datetime(2026, 1, 31, tzinfo=UTC)
MS = st.floats(0, 200_000, allow_nan=False)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics.text())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


@given(st.lists(MS, min_size=1, max_size=300), st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_quantiles_are_right_within_their_bucket(values: list[float], q: float) -> None:
    """Never below the true value, at most half above it (a microsecond, for the very small)."""
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    exact = ordered[max(-(-round(q * 100) * len(values) // 100), 1) - 1]
    told = histogram.quantile(q)

    assert exact <= told * (1 + 1e-12)
    assert told <= max(exact * 1.5 + 1e-9, 0.001) or told == histogram.highest


@given(st.lists(MS, max_size=200))
def test_prometheus_buckets_count_exactly(values: list[float]) -> None:
    """Each says how many took at most so long, and the last is all of them."""
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    for edge, count in histogram.cumulated():
        assert count == sum(value <= float(edge) * 1000 * (1 + 1e-12) for value in values)


def test_nothing_counted_is_zero() -> None:
    """No division by nothing."""
    assert Histogram().quantile(0.5) == 0.0
    assert Metrics().snapshot() == []
    assert Metrics().text().count("# TYPE") == 7


async def test_counts_decisions_and_failures_per_event_tool_and_hook() -> None:
    """One row per hook, one for the verdicts; a hook that was skipped has not run."""
    hooks, metrics = Hooks(), Metrics()
    hooks.observe(metrics, inline=True)

    @hooks.on("PreToolUse", match="Bash", name="guard")
    async def guard(event: Any) -> Any:
        return {"rm": deny("no"), "curl": ask("sure?"), "stop": stop("enough")}.get(event.tool_input["command"])

    @hooks.on("PreToolUse", match="Bash", name="crashes", on_failure="continue")
    async def crashes(event: Any) -> None:
        raise ValueError

    for command in ("ls", "ls", "rm", "curl", "stop"):
        await hooks.fire(bash(command))
    rows = {row.hook: row for row in metrics.snapshot()}

    assert rows["guard"].decisions == {"pass": 2, "deny": 1, "ask": 1, "stop": 1}
    assert (rows["crashes"].count, rows["crashes"].failures) == (3, 3)
    assert (rows[""].count, rows[""].failures, rows[""].decisions) == (
        5, 3, {"pass": 2, "deny": 1, "ask": 1, "stop": 1},
    )  # fmt: skip
    assert {(row.event, row.tool) for row in rows.values()} == {("PreToolUse", "Bash")}


def told(metrics: Metrics, event: Any) -> None:
    metrics(Verdict(event, NOTHING))


def test_tools_are_timed_by_what_the_event_says_or_by_the_clock() -> None:
    """US-3: duration and errors per tool; a call whose time nobody knows counts, but not as taking no time."""
    metrics = Metrics()
    told(metrics, bash("ls", tool_use_id="1", session_id="s", timestamp=START))
    told(
        metrics, PostToolUse(tool_name="Bash", tool_use_id="1", session_id="s", timestamp=START + timedelta(seconds=2))
    )
    told(metrics, PostToolUseFailure(tool_name="Bash", duration_ms=100.0))
    told(metrics, PostToolUse(tool_name="Bash", tool_use_id="never seen"))
    found = metrics.tools()["Bash"]

    assert (found.calls, found.errors, found.latency.count) == (3, 1, 2)
    assert found.latency.mean == pytest.approx(1050)
    assert found.latency.p99 == 2000


def test_the_same_id_in_another_session_is_another_call() -> None:
    """Times are not mixed up, and a clock that was put back makes no negative ones."""
    metrics = Metrics()
    for session, second in (("a", 0), ("b", 100)):
        told(metrics, bash("ls", tool_use_id="1", session_id=session, timestamp=START + timedelta(seconds=second)))
    told(
        metrics, PostToolUse(tool_name="Bash", tool_use_id="1", session_id="a", timestamp=START + timedelta(seconds=1))
    )
    told(metrics, PostToolUse(tool_name="Bash", tool_use_id="1", session_id="b", timestamp=START))

    assert metrics.tools()["Bash"].latency.mean == pytest.approx(500)


def test_tool_names_without_end_make_no_rows_without_end() -> None:
    """A model may invent a tool per call; the rest are counted together, and nothing is lost from the total."""
    metrics = Metrics(most_series=20)
    for number in range(500):
        told(metrics, tool(f"tool{number}", tool_use_id=str(number)))
        told(metrics, PostToolUse(tool_name=f"tool{number}"))
    rows = metrics.snapshot()

    assert len(rows) <= 22
    assert sum(row.count for row in rows) == 1000
    assert len(metrics.tools()) <= 21
    assert metrics.overflow > 0
    assert len(metrics._started) <= 20


async def test_prometheus_understands_the_text() -> None:
    """Its own parser reads every sample, with any tool name that a model may send."""
    hooks, metrics = Hooks(), Metrics()
    hooks.observe(metrics, inline=True)
    hooks.on("PreToolUse", name='a "quoted"\\ hook\n')(lambda event: deny("no"))
    names = ["Bash", 'quo"te', "new\nline", "back\\slash", "ü", "half\udcff"]
    for name in names:
        await hooks.fire(tool(name))
        await hooks.fire(PostToolUse(tool_name=name, duration_ms=12.0))
    found = samples(metrics)

    for name in [*names[:-1], "half\\udcff"]:
        assert found["hookline_verdicts_total", (("decision", "deny"), ("event", "PreToolUse"), ("tool", name))] == 1
        assert found["hookline_tool_duration_seconds_sum", (("tool", name),)] == pytest.approx(0.012)
        assert found["hookline_tool_duration_seconds_bucket", (("le", "0.01"), ("tool", name))] == 0
        assert found["hookline_tool_duration_seconds_bucket", (("le", "0.022"), ("tool", name))] == 1
        assert found["hookline_tool_duration_seconds_bucket", (("le", "+Inf"), ("tool", name))] == 1
        assert found["hookline_tool_calls_total", (("tool", name),)] == 1


async def test_the_endpoint_is_served() -> None:
    """A real request to a real port, while events fire; closing gives the port back."""
    hooks, metrics = Hooks(), Metrics()
    hooks.observe(metrics, inline=True)
    hooks.on("PreToolUse", name="guard")(lambda event: None)
    await hooks.fire(bash("ls"))
    server = metrics.serve(0)
    url = f"http://127.0.0.1:{server.port}/metrics"
    page = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=60).read().decode())
    server.close()

    names = {family.name for family in text_string_to_metric_families(page)}
    assert {"hookline_verdicts", "hookline_hook_duration_seconds", "hookline_hook_decisions"} <= names
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(urllib.request.urlopen, url, timeout=10)


def test_counting_and_reading_at_once_is_safe() -> None:
    """Eight threads count while another reads: nothing breaks, nothing is lost."""
    metrics = Metrics()
    going = threading.Event()

    def count(number: int) -> None:
        for step in range(300):
            told(metrics, tool(f"tool{number}-{step % 50}"))

    def look() -> None:
        while not going.is_set():
            metrics.snapshot()
            metrics.text()

    reader = threading.Thread(target=look)
    reader.start()
    writers = [threading.Thread(target=count, args=(n,)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    going.set()
    reader.join()

    assert sum(row.count for row in metrics.snapshot()) == 2400


async def test_metrics_from_a_thread_of_their_own_do_not_hold_up_the_agent() -> None:
    """US-3: observed without `inline`, a backend that is stuck costs the agent nothing."""
    hooks = Hooks()
    release = threading.Event()

    class Stuck(Metrics):
        def __call__(self, notice: Any) -> None:
            release.wait(30)
            super().__call__(notice)

    metrics = Stuck()
    hooks.observe(metrics)
    started = time.monotonic()
    for number in range(50):
        await hooks.fire(bash(str(number)))
    waited = time.monotonic() - started
    release.set()
    await hooks.aclose()

    assert waited < 15
    assert metrics.snapshot()[0].count == 50
