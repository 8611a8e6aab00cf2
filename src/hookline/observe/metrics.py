"""Counting what hooks do: per event, tool and hook, in bounded memory, readable in-process or by Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.engine import Notice, Status, Verdict
from hookline.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

BOUNDS = tuple(base * 10.0**power for power in range(-3, 5) for base in (1.0, 1.5, 2.2, 3.3, 4.7, 6.8))
"""Upper bounds of the latency buckets in milliseconds, a microsecond to over a minute, each half again as wide."""

_PROMETHEUS_BOUNDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0, 30000.0)
_BAD = (Status.FAILED, Status.TIMEOUT, Status.CANCELLED)


class Histogram:
    """How long something took, in buckets, so that any quantile is known within half its value."""

    __slots__ = ("buckets", "count", "highest", "total")

    def __init__(self) -> None:
        self.buckets: list[int] = [0] * (len(BOUNDS) + 1)
        self.count = 0
        self.total = 0.0
        self.highest = 0.0

    def add(self, ms: float) -> None:
        """One more measurement."""
        self.buckets[bisect_left(BOUNDS, ms)] += 1
        self.count += 1
        self.total += ms
        self.highest = max(self.highest, ms)

    def quantile(self, q: float) -> float:
        """The value that `q` of all measurements do not exceed: the bound of its bucket."""
        wanted, seen = q * self.count, 0
        for bound, number in zip((*BOUNDS, self.highest), self.buckets, strict=True):
            seen += number
            if number and seen >= wanted:
                return min(bound, self.highest)
        return 0.0

    def within(self, bound: float) -> int:
        """How many measurements were surely at most `bound`."""
        return sum(number for edge, number in zip(BOUNDS, self.buckets, strict=False) if edge <= bound)


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


class _Cell:
    __slots__ = ("decisions", "failures", "latency")

    def __init__(self) -> None:
        self.decisions: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.latency = Histogram()


class Metrics:
    """An observer that counts: `metrics = Metrics(); hooks.observe(metrics)`.

    Tools are timed too: from PreToolUse to PostToolUse or PostToolUseFailure of the same call, or by the duration the
    event itself carries.
    """

    def __init__(self, most_series: int = 10_000) -> None:
        self._cells: defaultdict[tuple[str, str, str], _Cell] = defaultdict(_Cell)
        self._tools: defaultdict[str, Histogram] = defaultdict(Histogram)
        self._tool_errors: Counter[str] = Counter()
        self._started: dict[str, float] = {}
        self._lock = threading.Lock()
        self._most = most_series
        self.overflow = 0

    def __call__(self, notice: Notice) -> None:
        """Count a verdict; anything else is passed over."""
        if not isinstance(notice, Verdict):
            return
        event = notice.event
        tool = getattr(event, "tool_name", "") or ""
        with self._lock:
            self._count(notice, event.event_name, tool)
            if tool:
                self._time_tool(event, tool)

    def _count(self, verdict: Verdict, event: str, tool: str) -> None:
        total = 0.0
        for outcome in verdict.outcomes:
            total += outcome.ms
            cell = self._cell(event, tool, outcome.hook)
            cell.decisions[str(outcome.decision)] += 1
            cell.latency.add(outcome.ms)
            if outcome.status in _BAD:
                cell.failures[str(outcome.status)] += 1
        whole = self._cell(event, tool, "")
        whole.decisions[str(verdict.decision)] += 1
        whole.latency.add(total)
        if verdict.failures:
            whole.failures["any"] += 1

    def _cell(self, event: str, tool: str, hook: str) -> _Cell:
        key = (event, tool, hook)
        if key not in self._cells and len(self._cells) >= self._most:
            self.overflow += 1
            key = (event, "(other)", "(other)" if hook else "")
        return self._cells[key]

    def _time_tool(self, event: Any, tool: str) -> None:
        name, call = event.event_name, getattr(event, "tool_use_id", "")
        if name == "PreToolUse" and call:
            if len(self._started) >= self._most:
                self._started.clear()
            self._started[call] = event.timestamp.timestamp()
        elif name in ("PostToolUse", "PostToolUseFailure"):
            began = self._started.pop(call, None)
            ms = event.duration_ms
            if ms is None and began is not None:
                ms = (event.timestamp.timestamp() - began) * 1000
            self._tools[tool].add(ms or 0.0)
            self._tool_errors[tool] += name == "PostToolUseFailure"

    def snapshot(self) -> list[Row]:
        """Everything counted so far, one row per event, tool and hook; the row without a hook is the verdicts'."""
        with self._lock:
            return [_row(*key, cell) for key, cell in sorted(self._cells.items())]

    def tools(self) -> dict[str, tuple[Latency, int]]:
        """Per tool: how long its calls took, and how many failed."""
        with self._lock:
            return {tool: (_latency(h), self._tool_errors[tool]) for tool, h in sorted(self._tools.items())}

    def registry(self) -> CollectorRegistry:
        """A Prometheus registry of these metrics, for an exporter of your own."""
        try:
            from prometheus_client.registry import CollectorRegistry
        except ImportError:
            raise MissingExtra("Prometheus metrics", "metrics") from None
        registry = CollectorRegistry()
        registry.register(_Collector(self))
        return registry

    def text(self) -> str:
        """What a Prometheus server would read."""
        registry = self.registry()
        from prometheus_client import generate_latest

        return generate_latest(registry).decode()

    def serve(self, port: int = 9464, address: str = "127.0.0.1") -> Any:
        """Serve `text()` at /metrics from a thread; the server that comes back ends with `shutdown()`."""
        registry = self.registry()
        from prometheus_client import start_http_server

        server, _ = start_http_server(port, address, registry)
        return server

    def cells(self) -> list[tuple[tuple[str, str, str], _Cell]]:
        """The raw counts, for the Prometheus collector."""
        with self._lock:
            return sorted(self._cells.items())

    def tool_cells(self) -> list[tuple[str, Histogram, int]]:
        """The raw tool timings, for the Prometheus collector."""
        with self._lock:
            return [(tool, histogram, self._tool_errors[tool]) for tool, histogram in sorted(self._tools.items())]


def _row(event: str, tool: str, hook: str, cell: _Cell) -> Row:
    latency = _latency(cell.latency)
    return Row(event, tool, hook, latency.count, dict(cell.decisions), sum(cell.failures.values()), latency)


def _latency(histogram: Histogram) -> Latency:
    mean = histogram.total / histogram.count if histogram.count else 0.0
    return Latency(histogram.count, mean, *(histogram.quantile(q) for q in (0.5, 0.95, 0.99)))


class _Collector:
    """Gives Prometheus what it asks for, when it asks."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        labels = ["event", "tool", "hook"]
        decisions = CounterMetricFamily("hookline_hook_decisions", "Answers of hooks", labels=[*labels, "decision"])
        failures = CounterMetricFamily("hookline_hook_failures", "Runs that went wrong", labels=[*labels, "status"])
        seconds = HistogramMetricFamily("hookline_hook_duration_seconds", "How long hooks took", labels=labels)
        verdicts = CounterMetricFamily("hookline_verdicts", "Verdicts", labels=["event", "tool", "decision"])
        for (event, tool, hook), cell in self._metrics.cells():
            if not hook:
                for decision, number in cell.decisions.items():
                    verdicts.add_metric([event, tool, decision], number)
                continue
            for decision, number in cell.decisions.items():
                decisions.add_metric([event, tool, hook, decision], number)
            for status, number in cell.failures.items():
                failures.add_metric([event, tool, hook, status], number)
            seconds.add_metric([event, tool, hook], _buckets(cell.latency), cell.latency.total / 1000)
        yield from (decisions, failures, seconds, verdicts)
        yield from self._tools()

    def _tools(self) -> Iterable[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        seconds = HistogramMetricFamily("hookline_tool_duration_seconds", "How long tools took", labels=["tool"])
        errors = CounterMetricFamily("hookline_tool_errors", "Tool calls that failed", labels=["tool"])
        for tool, histogram, failed in self._metrics.tool_cells():
            seconds.add_metric([tool], _buckets(histogram), histogram.total / 1000)
            errors.add_metric([tool], failed)
        yield from (seconds, errors)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    edges = [(str(bound / 1000), float(histogram.within(bound))) for bound in _PROMETHEUS_BOUNDS]
    return [*edges, ("+Inf", float(histogram.count))]
