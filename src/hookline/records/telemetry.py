"""What hooks do, for others to watch: counts per event, tool and hook, and OpenTelemetry's spans.

The counts are kept in bounded memory and read in-process or by Prometheus. Every tool call has a span, with its hooks
as children. Where the GenAI conventions have a word it is used (`execute_tool`, `gen_ai.tool.name`,
`gen_ai.conversation.id`); what is ours is called `hookline.*`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, OrderedDict
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hookline.core.engine import Notice, Status, Verdict
from hookline.core.wire.json_text import valid_text
from hookline.errors import extra
from hookline.replies import Decision, Reply

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.simple_server import WSGIServer

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

BOUNDS = tuple(base * 10.0**power for power in range(-3, 5) for base in (1.0, 1.5, 2.2, 3.3, 4.7, 6.8))
"""Upper bounds of the latency buckets in milliseconds, a microsecond to over a minute, each half again as wide."""

_EDGES = range(12, len(BOUNDS), 2)
"""The buckets that Prometheus is told of: every second one from 0.1 ms on; being bounds, they are counted exactly."""
TIMED = ("PreToolUse", "PostToolUse", "PostToolUseFailure")  # what has to be heard of for tools to be timed
_BAD = (Status.FAILED, Status.TIMEOUT, Status.CANCELLED)
_OTHER = "(other)"
_DECISIONS = {decision: str(decision) for decision in Decision}
_MOST_OPEN = 1_000
_ENDS = {"PostToolUse": "", "PostToolUseFailure": "tool_error", "PermissionDenied": "permission_denied"}
"""The events that end a tool call, and the kind of error each means."""

_Call = tuple[str, str]
_Key = TypeVar("_Key", str, tuple[str, str, str])


def quantile(buckets: Iterable[tuple[float, int]], q: float, count: int) -> float:
    """The value that `q` of `count` measurements do not exceed; `buckets` are values, smallest first, and numbers."""
    wanted, seen = ceil(q * count - 1e-9), 0
    for value, number in buckets:
        seen += number
        if number and seen >= wanted:
            return value
    return 0.0


class Histogram(msgspec.Struct):
    """How long something took, in buckets, so that any quantile is known within half its value."""

    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    count: int = 0
    total: float = 0.0
    highest: float = 0.0

    def add(self, ms: float) -> None:
        self.buckets[bisect_left(BOUNDS, ms)] += 1
        self.count += 1
        self.total += ms
        self.highest = max(self.highest, ms)

    def quantile(self, q: float) -> float:
        """The value that `q` of all measurements do not exceed: the bound of its bucket."""
        return min(quantile(zip((*BOUNDS, self.highest), self.buckets, strict=True), q, self.count), self.highest)

    def cumulated(self) -> list[tuple[str, float]]:
        """Prometheus' buckets: up to how many seconds, and how many measurements were at most that."""
        edges = [(f"{BOUNDS[edge] / 1000:g}", float(sum(self.buckets[: edge + 1]))) for edge in _EDGES]
        return [*edges, ("+Inf", float(self.count))]


class Latency(msgspec.Struct, frozen=True):
    """A histogram in five numbers, in milliseconds."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float


class Row(msgspec.Struct, frozen=True):
    """What is known of one hook on one event and tool, or (with an empty hook) of the verdicts there."""

    event: str
    tool: str
    hook: str
    count: int
    decisions: dict[str, int]
    failures: int
    latency: Latency


class _Cell(msgspec.Struct):
    """What is counted of one hook, or of one tool: how it went, what went wrong, how long it took."""

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    failures: Counter[str] = msgspec.field(default_factory=Counter)
    latency: Histogram = msgspec.field(default_factory=Histogram)

    def copy(self) -> _Cell:
        latency = msgspec.structs.replace(self.latency, buckets=list(self.latency.buckets))
        return _Cell(self.counts.copy(), self.failures.copy(), latency)


class Tool(msgspec.Struct, frozen=True):
    """What is known of one tool: its calls, how many of them failed, and how long those took whose time is known."""

    calls: int
    errors: int
    latency: Latency


class MetricsServer:
    """A Prometheus endpoint; `port` is where, `close()` ends it."""

    def __init__(self, server: WSGIServer, thread: threading.Thread) -> None:
        self._server = server
        self._thread = thread
        self.port: int = server.server_port

    def close(self) -> None:
        """Stop serving and give the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Metrics:
    """An observer that counts: `metrics = Metrics(); hooks.observe(metrics)`.

    Tools are timed too: by the duration that PostToolUse or PostToolUseFailure carries, or else from PreToolUse on.
    Whatever agents call their tools, there are no more than `most_series` rows; the rest are counted as `(other)`.
    """

    events = TIMED
    verdicts_only = True

    def __init__(self, most_series: int = 10_000) -> None:
        self._cells: dict[tuple[str, str, str], _Cell] = {}
        self._tools: dict[str, _Cell] = {}
        self._started: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()
        self._most = most_series
        self.overflow: int = 0

    def __call__(self, notice: Notice) -> None:
        if not isinstance(notice, Verdict):
            return
        event = notice.event
        tool = event.tool_name or ""
        with self._lock:
            self._count(notice, event.event_name, tool)
            if tool:
                self._time_tool(notice, event, tool)

    def _count(self, verdict: Verdict, event: str, tool: str) -> None:
        total = 0.0
        for outcome in verdict.outcomes:
            if outcome.status is Status.SKIPPED:
                continue
            total += outcome.ms
            cell = self._cell(event, tool, outcome.hook)
            cell.counts[_word(outcome.reply)] += 1
            cell.latency.add(outcome.ms)
            if outcome.status in _BAD:
                cell.failures[outcome.status.value] += 1
        whole = self._cell(event, tool, "")
        whole.counts[_word(verdict.reply)] += 1
        whole.latency.add(total)
        whole.failures["any"] += any(outcome.status in _BAD for outcome in verdict.outcomes)

    def _cell(self, event: str, tool: str, hook: str) -> _Cell:
        key = (event, tool, hook)
        if key not in self._cells and len(self._cells) >= self._most:
            self.overflow += 1
            key = (event, _OTHER, _OTHER if hook else "")
        return self._cells.get(key) or self._cells.setdefault(key, _Cell())

    def _time_tool(self, verdict: Verdict, event: Any, tool: str) -> None:
        name = event.event_name
        call = (event.session_id, event.tool_use_id or "")
        if name == "PreToolUse":
            if call[1] and not verdict.blocked:
                self._started[call] = event.timestamp.timestamp()
                if len(self._started) > self._most:
                    self._started.popitem(last=False)
        elif name in ("PostToolUse", "PostToolUseFailure"):
            began, ms = self._started.pop(call, None), event.duration_ms
            if ms is None and began is not None:
                ms = max(event.timestamp.timestamp() - began, 0.0) * 1000
            known = tool in self._tools or len(self._tools) < self._most
            cell = self._tools.setdefault(tool if known else _OTHER, _Cell())
            cell.counts["calls"] += 1
            cell.failures["errors"] += name == "PostToolUseFailure"
            if ms is not None:
                cell.latency.add(ms)

    def snapshot(self) -> list[Row]:
        """Everything counted so far, one row per event, tool and hook; the row without a hook is the verdicts'."""
        return [
            Row(*key, cell.latency.count, dict(cell.counts), cell.failures.total(), _latency(cell.latency))
            for key, cell in self._now(self._cells)
        ]

    def tools(self) -> dict[str, Tool]:
        """Per tool: how many calls, how many failed, how long they took."""
        return {
            tool: Tool(cell.counts["calls"], cell.failures["errors"], _latency(cell.latency))
            for tool, cell in self._now(self._tools)
        }

    def registry(self) -> CollectorRegistry:
        """A Prometheus registry of these metrics, for an exporter of your own."""
        with extra("Prometheus metrics", "metrics"):
            from prometheus_client.registry import CollectorRegistry
        registry = CollectorRegistry()
        registry.register(self)
        return registry

    def text(self) -> str:
        """What a Prometheus server would read."""
        registry = self.registry()
        from prometheus_client import generate_latest

        return generate_latest(registry).decode()

    def serve(self, port: int = 9464, address: str = "127.0.0.1") -> MetricsServer:
        """Serve `text()` at /metrics from a thread; port 0 takes any that is free."""
        registry = self.registry()
        from prometheus_client import start_http_server

        return MetricsServer(*start_http_server(port, address, registry))

    def collect(self) -> Iterable[Metric]:
        """What Prometheus' own library asks a registry's members for."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        labels = ["event", "tool", "hook"]
        decisions = CounterMetricFamily("hookline_hook_decisions", "Answers of hooks", labels=[*labels, "decision"])
        failures = CounterMetricFamily("hookline_hook_failures", "Runs that went wrong", labels=[*labels, "status"])
        seconds = HistogramMetricFamily("hookline_hook_duration_seconds", "How long hooks took", labels=labels)
        verdicts = CounterMetricFamily("hookline_verdicts", "Verdicts", labels=["event", "tool", "decision"])
        tool_seconds = HistogramMetricFamily("hookline_tool_duration_seconds", "How long tools took", labels=["tool"])
        errors = CounterMetricFamily("hookline_tool_errors", "Tool calls that failed", labels=["tool"])
        calls = CounterMetricFamily("hookline_tool_calls", "Tool calls that were made", labels=["tool"])
        for key, cell in self._now(self._cells):
            event, tool, hook = map(valid_text, key)
            for decision, number in cell.counts.items():
                counter, which = (decisions, [event, tool, hook]) if hook else (verdicts, [event, tool])
                counter.add_metric([*which, decision], number)
            if hook:
                for status, number in cell.failures.items():
                    failures.add_metric([event, tool, hook, status], number)
                seconds.add_metric([event, tool, hook], cell.latency.cumulated(), cell.latency.total / 1000)
        for name, cell in self._now(self._tools):
            tool_seconds.add_metric([valid_text(name)], cell.latency.cumulated(), cell.latency.total / 1000)
            errors.add_metric([valid_text(name)], cell.failures["errors"])
            calls.add_metric([valid_text(name)], cell.counts["calls"])
        yield from (decisions, failures, seconds, verdicts, tool_seconds, errors, calls)

    def _now(self, cells: dict[_Key, _Cell]) -> list[tuple[_Key, _Cell]]:
        """Copies of the counts as they are now."""
        with self._lock:
            return [(key, cell.copy()) for key, cell in sorted(cells.items())]


def _word(reply: Reply) -> str:
    """The decision in a word; a hook that only ends the turn has decided too."""
    return "stop" if reply.decision is Decision.PASS and reply.stop else _DECISIONS[reply.decision]


def _latency(histogram: Histogram) -> Latency:
    mean = histogram.total / histogram.count if histogram.count else 0.0
    return Latency(histogram.count, mean, *(histogram.quantile(q) for q in (0.5, 0.95, 0.99)))


class OpenTelemetry:
    """An observer that traces: `hooks.observe(OpenTelemetry())` uses the global providers.

    A tool call's span begins at its PreToolUse and ends with the event that ends the call; one that never comes ends
    it with the session, or with `close()`. Spans are children of the span that is current where the event is fired.
    """

    verdicts_only = True
    always_inline = True  # in a thread of its own, the application's current span would not be known

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        with extra("OpenTelemetry", "otel"):
            from opentelemetry import metrics, trace
        self._trace = trace
        self._tracer = trace.get_tracer("hookline", tracer_provider=tracer_provider)
        meter = metrics.get_meter("hookline", meter_provider=meter_provider)
        self._duration = meter.create_histogram("hookline.hook.duration", "s", "How long hooks took")
        self._verdicts = meter.create_counter("hookline.verdicts", "{verdict}", "Verdicts by event and decision")
        self._failures = meter.create_counter("hookline.hook.failures", "{failure}", "Runs that went wrong")
        self._open: OrderedDict[_Call, Span] = OrderedDict()
        self._lock = threading.RLock()

    def __call__(self, notice: Notice) -> None:
        if isinstance(notice, Verdict):
            with self._lock:
                self._spans(notice)

    def close(self) -> None:
        """End the spans of calls whose end was never told."""
        with self._lock:
            self._end_unfinished(list(self._open))

    def _spans(self, verdict: Verdict) -> None:
        event = verdict.event
        began = int(event.timestamp.timestamp() * 1e9)
        call = (event.session_id, event.tool_use_id or "")
        parent = self._tool_span(verdict, call, began)
        context = self._trace.set_span_in_context(parent) if parent is not None else None
        attributes = _said({
            "hookline.event": event.event_name, "hookline.subject": event.subject,
            "hookline.decision": str(verdict.decision), "hookline.blocked": verdict.blocked,
            "hookline.decided_by": verdict.decided_by, **_who(verdict),
        })  # fmt: skip
        name = f"hookline {event.event_name}"
        span = self._tracer.start_span(name, context=context, start_time=began, attributes=attributes)
        ended = self._hook_spans(verdict, span, began)
        if verdict.blocked:
            span.set_status(self._trace.StatusCode.ERROR, verdict.reason)
        span.end(ended)
        if parent is not None:
            self._end_if_over(verdict, call, parent, ended)
        if event.event_name == "SessionEnd":
            self._end_unfinished([one for one in self._open if one[0] == event.session_id])

    def _tool_span(self, verdict: Verdict, call: _Call, began: int) -> Span | None:
        """The span of the tool call this event belongs to, opened at its PreToolUse."""
        event = verdict.event
        if event.event_name == "PreToolUse" and call[1] and call not in self._open:
            tool = event.tool_name
            attributes = {
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": call[1],
                **_who(verdict),
            }  # fmt: skip
            self._open[call] = self._tracer.start_span(f"execute_tool {tool}", start_time=began, attributes=attributes)
            if len(self._open) > _MOST_OPEN:
                self._end_unfinished([next(iter(self._open))])
        return self._open.get(call)

    def _hook_spans(self, verdict: Verdict, parent: Span, began: int) -> int:
        """A span for each hook that ran, one after another, and its figures; when the last one ended."""
        labels = _said({"hookline.event": verdict.event.event_name, "gen_ai.tool.name": verdict.event.tool_name})
        self._verdicts.add(1, {**labels, "hookline.decision": str(verdict.decision)})
        context = self._trace.set_span_in_context(parent)
        for outcome in verdict.outcomes:
            if outcome.status is Status.SKIPPED:
                continue
            attributes = _said({
                "hookline.hook": outcome.hook, "hookline.source": outcome.source,
                "hookline.status": str(outcome.status), "hookline.decision": str(outcome.decision),
                "process.exit.code": outcome.exit_code,
            })  # fmt: skip
            name = f"hook {outcome.hook}"
            span = self._tracer.start_span(name, context=context, start_time=began, attributes=attributes)
            mine = {**labels, "hookline.hook": outcome.hook}
            self._duration.record(outcome.ms / 1000, mine)
            if not outcome.ok:
                self._failures.add(1, {**mine, "error.type": str(outcome.status)})
                span.set_attribute("error.type", str(outcome.status))
                span.set_status(self._trace.StatusCode.ERROR, outcome.error)
            began += int(outcome.ms * 1e6)
            span.end(began)
        return began

    def _end_if_over(self, verdict: Verdict, call: _Call, span: Span, ended: int) -> None:
        name = verdict.event.event_name
        denied = name == "PreToolUse" and verdict.blocked
        if not denied and name not in _ENDS:
            return
        del self._open[call]
        error = "hook_denied" if denied else _ENDS[name]
        if error:
            own = getattr(verdict.event, "error", "") or getattr(verdict.event, "reason", "")
            span.set_attribute("error.type", error)
            span.set_status(self._trace.StatusCode.ERROR, verdict.reason if denied else own)
        span.end(ended)

    def _end_unfinished(self, calls: list[_Call]) -> None:
        for call in calls:
            span = self._open.pop(call)
            span.set_attribute("hookline.unfinished", value=True)
            span.end()


def _said(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value not in (None, "")}


def _who(verdict: Verdict) -> dict[str, Any]:
    event = verdict.event
    return _said({
        "gen_ai.conversation.id": event.session_id, "gen_ai.agent.id": event.agent_id,
        "gen_ai.agent.name": event.agent_type,
    })  # fmt: skip
