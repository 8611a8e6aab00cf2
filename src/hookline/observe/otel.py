"""OpenTelemetry: a span for every tool call, with its hooks as children, and metrics beside.

Where the GenAI conventions have a word it is used (`execute_tool`, `gen_ai.tool.name`, `gen_ai.conversation.id`);
what is ours is called `hookline.*`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from hookline.engine import Notice, Outcome, Verdict
from hookline.errors import MissingExtra

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

_MOST_OPEN = 1_000
_ENDS = ("PostToolUse", "PostToolUseFailure", "PermissionDenied")


class OpenTelemetry:
    """An observer that traces: `hooks.observe(OpenTelemetry())` uses the global providers."""

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            raise MissingExtra("OpenTelemetry", "otel") from None
        self._trace = trace
        self._tracer = trace.get_tracer("hookline", tracer_provider=tracer_provider)
        meter = metrics.get_meter("hookline", meter_provider=meter_provider)
        self._duration = meter.create_histogram("hookline.hook.duration", "s", "How long hooks took")
        self._verdicts = meter.create_counter("hookline.verdicts", "{verdict}", "Verdicts by event and decision")
        self._failures = meter.create_counter("hookline.hook.failures", "{failure}", "Runs that went wrong")
        self._open: OrderedDict[str, Span] = OrderedDict()

    def __call__(self, notice: Notice) -> None:
        """Trace a verdict; anything else is passed over."""
        if isinstance(notice, Verdict):
            self._spans(notice)
            self._count(notice)

    def _spans(self, verdict: Verdict) -> None:
        event, now = verdict.event, time.time_ns()
        call = getattr(event, "tool_use_id", "")
        began = now - int(sum(outcome.ms for outcome in verdict.outcomes) * 1e6)
        parent = self._tool_span(verdict, call, began)
        context = self._trace.set_span_in_context(parent) if parent is not None else None
        span = self._tracer.start_span(
            f"hookline {event.event_name}", context=context, start_time=began, attributes=_verdict_attributes(verdict)
        )
        self._hook_spans(verdict, span, began)
        if verdict.blocked:
            span.set_status(self._trace.StatusCode.ERROR, verdict.reason)
        span.end(now)
        if parent is not None and (event.event_name in _ENDS or verdict.blocked):
            self._end(call, parent, verdict, now)

    def _tool_span(self, verdict: Verdict, call: str, began: int) -> Span | None:
        """The span of the tool call this event belongs to, opened at its PreToolUse."""
        event = verdict.event
        if event.event_name == "PreToolUse" and call and call not in self._open:
            tool = event.tool_name  # type: ignore[attr-defined]
            attributes = {
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": call,
                "gen_ai.conversation.id": event.session_id,
            }  # fmt: skip
            self._open[call] = self._tracer.start_span(f"execute_tool {tool}", start_time=began, attributes=attributes)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)[1].end()
        return self._open.get(call)

    def _hook_spans(self, verdict: Verdict, parent: Span, began: int) -> None:
        context = self._trace.set_span_in_context(parent)
        at = began
        for outcome in verdict.outcomes:
            end = at + int(outcome.ms * 1e6)
            span = self._tracer.start_span(
                f"hook {outcome.hook}", context=context, start_time=at, attributes=_outcome_attributes(outcome)
            )
            if not outcome.ok:
                span.set_status(self._trace.StatusCode.ERROR, outcome.error)
            span.end(end)
            at = end

    def _end(self, call: str, span: Span, verdict: Verdict, now: int) -> None:
        self._open.pop(call, None)
        if verdict.event.event_name == "PostToolUseFailure" or verdict.blocked:
            span.set_attribute("error.type", "hook_denied" if verdict.blocked else "tool_error")
            span.set_status(self._trace.StatusCode.ERROR, verdict.reason)
        span.end(now)

    def _count(self, verdict: Verdict) -> None:
        event = verdict.event.event_name
        labels = {"hookline.event": event, "gen_ai.tool.name": getattr(verdict.event, "tool_name", "")}
        self._verdicts.add(1, {**labels, "hookline.decision": str(verdict.decision)})
        for outcome in verdict.outcomes:
            self._duration.record(outcome.ms / 1000, {**labels, "hookline.hook": outcome.hook})
            if not outcome.ok:
                self._failures.add(1, {**labels, "hookline.hook": outcome.hook, "hookline.status": str(outcome.status)})


def _verdict_attributes(verdict: Verdict) -> dict[str, Any]:
    said = {
        "hookline.event": verdict.event.event_name,
        "hookline.subject": verdict.event.subject,
        "hookline.decision": str(verdict.decision),
        "hookline.blocked": verdict.blocked,
        "hookline.decided_by": verdict.decided_by,
        "gen_ai.conversation.id": verdict.event.session_id,
        "gen_ai.agent.id": verdict.event.agent_id,
    }
    return {key: value for key, value in said.items() if value not in (None, "")}


def _outcome_attributes(outcome: Outcome) -> dict[str, Any]:
    said = {
        "hookline.hook": outcome.hook,
        "hookline.source": outcome.source,
        "hookline.status": str(outcome.status),
        "hookline.decision": str(outcome.decision),
        "process.exit.code": outcome.exit_code,
    }
    return {key: value for key, value in said.items() if value is not None}
