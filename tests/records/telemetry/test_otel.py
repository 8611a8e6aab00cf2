"""Spans and metrics, as a real OpenTelemetry SDK receives them."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from hookline import Hooks, deny
from hookline.events import PermissionDenied, PostToolUse, PostToolUseFailure, SessionEnd, Stop
from hookline.records.telemetry import OpenTelemetry
from hookline.testing import bash

NAMES: dict[str, Any] = {"tool_use_id": "t1", "session_id": "test-session"}
START = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Telemetry:
    """A set of hooks that is traced, and what came of it."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.observer = OpenTelemetry(tracers, MeterProvider([self._reader]))
        self.hooks = Hooks()
        self.hooks.observe(self.observer)

        @self.hooks.on("PreToolUse", name="guard")
        async def guard(event: Any) -> Any:
            return deny("never that") if "rm" in event.tool_input["command"] else None

    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans() if span.name == name]
        return found

    def points(self, name: str) -> dict[tuple[tuple[str, str], ...], Any]:
        data: Any = self._reader.get_metrics_data()
        (metric,) = [
            m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name
        ]  # fmt: skip
        return {tuple(sorted(point.attributes.items())): point for point in metric.data.data_points}


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def times(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


async def test_a_tool_call_is_a_span_and_its_hooks_are_children(telemetry: Telemetry) -> None:
    """`execute_tool` from PreToolUse to PostToolUse, in the GenAI conventions' words; hooks below it."""
    names: dict[str, Any] = {"tool_use_id": "t1", "session_id": "s1"}
    await telemetry.hooks.fire(bash("ls", agent_id="a1", agent_type="Explore", timestamp=START, **names))
    after = START + timedelta(seconds=2)
    await telemetry.hooks.fire(PostToolUse(tool_name="Bash", timestamp=after, **names))
    tool, before, done = map(telemetry.span, ("execute_tool Bash", "hookline PreToolUse", "hookline PostToolUse"))
    hook = telemetry.span("hook guard")

    assert parent_of(tool) is None
    assert (parent_of(before), parent_of(done), parent_of(hook)) == (id_of(tool), id_of(tool), id_of(before))
    assert dict(tool.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Bash", "gen_ai.tool.call.id": "t1",
        "gen_ai.conversation.id": "s1", "gen_ai.agent.id": "a1", "gen_ai.agent.name": "Explore",
    }  # fmt: skip
    assert (hook.attributes or {})["hookline.hook"] == "guard"
    assert tool.status.status_code is StatusCode.UNSET
    assert times(tool) == (int(START.timestamp() * 1e9), times(done)[1])
    assert times(tool)[0] <= times(before)[0] <= times(hook)[0] <= times(hook)[1] <= times(before)[1] <= times(tool)[1]


async def test_a_denied_call_ends_where_it_was_denied(telemetry: Telemetry) -> None:
    """The span is an error that says who denied, and why; no PostToolUse will come."""
    await telemetry.hooks.fire(bash("rm x", tool_use_id="t1"))
    tool, judged = telemetry.span("execute_tool Bash"), telemetry.span("hookline PreToolUse")

    assert (tool.status.status_code, tool.status.description) == (StatusCode.ERROR, "never that")
    assert (tool.attributes or {})["error.type"] == "hook_denied"
    assert (judged.attributes or {})["hookline.decided_by"] == "guard"
    assert (judged.attributes or {})["hookline.blocked"] is True


@pytest.mark.parametrize(
    "ending, kind, why",
    [
        (PostToolUseFailure(**NAMES, tool_name="Bash", error="exit 1"), "tool_error", "exit 1"),
        (PermissionDenied(**NAMES, tool_name="Bash", reason="rule"), "permission_denied", "rule"),
    ],
)  # fmt: skip
async def test_a_call_that_fails_or_is_refused_is_an_error(
    telemetry: Telemetry, ending: Any, kind: str, why: str
) -> None:
    """With the kind of error, and what was said."""
    await telemetry.hooks.fire(bash("ls", tool_use_id="t1"))
    await telemetry.hooks.fire(ending)
    tool = telemetry.span("execute_tool Bash")

    assert ((tool.attributes or {})["error.type"], tool.status.description) == (kind, why)


async def test_an_objection_after_the_fact_does_not_make_the_call_a_denied_one(telemetry: Telemetry) -> None:
    """A PostToolUse hook that blocks comes too late: the tool ran."""
    telemetry.hooks.on("PostToolUse")(lambda event: deny("bad output"))
    await telemetry.hooks.fire(bash("ls", tool_use_id="t1"))
    await telemetry.hooks.fire(PostToolUse(tool_name="Bash", tool_use_id="t1", session_id="test-session"))

    assert telemetry.span("execute_tool Bash").status.status_code is StatusCode.UNSET
    assert telemetry.span("hookline PostToolUse").status.status_code is StatusCode.ERROR


async def test_calls_at_the_same_time_are_kept_apart(telemetry: Telemetry) -> None:
    """Each event goes to its own call, also where two sessions use the same id."""

    async def call(session: str, number: int) -> None:
        names: dict[str, Any] = {"tool_use_id": f"t{number}", "session_id": session}
        await telemetry.hooks.fire(bash("ls", **names))
        await asyncio.sleep(0)
        await telemetry.hooks.fire(PostToolUse(tool_name="Bash", **names))

    await asyncio.gather(*(call(session, number) for session in "ab" for number in range(20)))
    tools = [span for span in telemetry.spans() if span.name == "execute_tool Bash"]
    parents = [parent_of(span) for span in telemetry.spans() if span.name.startswith("hookline ")]

    assert len(tools) == 40
    assert sorted(parents, key=str) == sorted((id_of(span) for span in tools for _ in range(2)), key=str)


async def test_a_call_whose_end_never_comes_ends_with_its_session(telemetry: Telemetry) -> None:
    """Nothing is left open; the span says that it is unfinished. Other sessions go on."""
    await telemetry.hooks.fire(bash("ls", tool_use_id="t1", session_id="one"))
    await telemetry.hooks.fire(bash("ls", tool_use_id="t1", session_id="two"))
    await telemetry.hooks.fire(SessionEnd(session_id="one"))
    (ended,) = [span for span in telemetry.spans() if span.name == "execute_tool Bash"]

    assert (ended.attributes or {})["hookline.unfinished"] is True
    assert (ended.attributes or {})["gen_ai.conversation.id"] == "one"
    await telemetry.hooks.aclose()
    assert len([span for span in telemetry.spans() if span.name == "execute_tool Bash"]) == 2


async def test_calls_whose_ends_never_come_do_not_fill_the_memory(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are ended when there are too many."""
    monkeypatch.setattr("hookline.records.telemetry._MOST_OPEN", 10)
    for number in range(30):
        await telemetry.hooks.fire(bash("ls", tool_use_id=str(number)))

    assert len([span for span in telemetry.spans() if span.name == "execute_tool Bash"]) == 20


async def test_events_without_a_call_have_spans_of_their_own(telemetry: Telemetry) -> None:
    """A Stop, and a PostToolUse whose PreToolUse nobody saw."""
    await telemetry.hooks.fire(Stop())
    await telemetry.hooks.fire(PostToolUse(tool_name="Bash", tool_use_id="unknown"))

    assert [(span.name, span.parent) for span in telemetry.spans()] == [
        ("hookline Stop", None), ("hookline PostToolUse", None),
    ]  # fmt: skip


async def test_hooks_and_verdicts_are_measured(telemetry: Telemetry) -> None:
    """Durations in seconds, verdicts by decision, failures by kind; hooks that were skipped are not counted."""

    @telemetry.hooks.on("PreToolUse", name="crashes")
    async def crashes(event: Any) -> None:
        raise ValueError("boom")

    for command in ("ls", "rm x", "rm y"):
        await telemetry.hooks.fire(bash(command))
    base = (("gen_ai.tool.name", "Bash"), ("hookline.event", "PreToolUse"))
    counted = telemetry.points("hookline.verdicts")
    timed = telemetry.points("hookline.hook.duration")
    failed = telemetry.points("hookline.hook.failures")

    assert sum(point.value for point in counted.values()) == 3
    assert timed[(*base, ("hookline.hook", "guard"))].count == 3
    assert timed[(*base, ("hookline.hook", "crashes"))].count == 1
    assert [dict(key)["error.type"] for key in failed] == ["failed"]
    crashed = telemetry.span("hook crashes")
    assert (crashed.status.status_code, (crashed.attributes or {})["error.type"]) == (StatusCode.ERROR, "failed")


@pytest.mark.parametrize("way", ["await", "sync", "sync in a loop"])
def test_spans_are_children_of_the_applications_own(way: str) -> None:
    """`hooks.observe(OpenTelemetry())`, as the page has it: every request has its spans in its own trace."""
    spans, tracers, hooks = InMemorySpanExporter(), TracerProvider(), Hooks()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    hooks.observe(OpenTelemetry(tracers))
    hooks.add("PreToolUse", lambda event: None, name="guard")

    async def request() -> None:
        if way == "await":
            await hooks.fire(bash("ls", tool_use_id="t1"))
        else:
            hooks.fire_sync(bash("ls", tool_use_id="t1"))
        hooks.fire_sync(PostToolUse(tool_name="Bash", **NAMES))

    for number in range(2):
        with tracers.get_tracer("app").start_as_current_span(f"request {number}"):
            if way == "sync":
                hooks.fire_sync(bash("ls", tool_use_id="t1"))
                hooks.fire_sync(PostToolUse(tool_name="Bash", **NAMES))
            else:
                asyncio.run(request())
    traces: dict[int, list[str]] = {}
    for span in spans.get_finished_spans():
        assert span.context is not None
        traces.setdefault(span.context.trace_id, []).append(span.name)

    ours = ["execute_tool Bash", "hook guard", "hookline PostToolUse", "hookline PreToolUse"]
    assert [sorted(names) for names in traces.values()] == [[*ours, f"request {number}"] for number in range(2)]
