"""OpenTelemetry: a span for every tool call, with its hooks as children, and metrics beside.

Where the GenAI conventions have a word it is used (`execute_tool`, `gen_ai.tool.name`, `gen_ai.conversation.id`);
what is ours is called `hookline.*`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from hookline.core.engine import Notice, Outcome, Status, Verdict
from hookline.errors import extra

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

_MOST_OPEN = 1_000
_ENDS = {"PostToolUse": "", "PostToolUseFailure": "tool_error", "PermissionDenied": "permission_denied"}
"""The events that end a tool call, and the kind of error each means."""

_Call = tuple[str, str]


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
        """Trace a verdict; anything else is passed over."""
        if isinstance(notice, Verdict):
            with self._lock:
                self._spans(notice)
            self._count(notice)

    def close(self) -> None:
        """End the spans of calls whose end was never told."""
        with self._lock:
            self._end_unfinished(list(self._open))

    # -- spans ---------------------------------------------------------------------------------------------------

    def _spans(self, verdict: Verdict) -> None:
        event = verdict.event
        began = int(event.timestamp.timestamp() * 1e9)
        ended = began + sum(_nanoseconds(outcome) for outcome in verdict.outcomes)
        call = (event.session_id, event.tool_use_id or "")
        parent = self._tool_span(verdict, call, began)
        context = self._trace.set_span_in_context(parent) if parent is not None else None
        attributes = _said({
            "hookline.event": event.event_name, "hookline.subject": event.subject,
            "hookline.decision": str(verdict.decision), "hookline.blocked": verdict.blocked,
            "hookline.decided_by": verdict.decided_by, **_who(verdict),
        })  # fmt: skip
        span = self._tracer.start_span(
            f"hookline {event.event_name}", context=context, start_time=began, attributes=attributes
        )
        self._hook_spans(verdict, span, began)
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

    def _hook_spans(self, verdict: Verdict, parent: Span, began: int) -> None:
        context = self._trace.set_span_in_context(parent)
        at = began
        for outcome in _runs(verdict):
            end = at + _nanoseconds(outcome)
            attributes = _said({
                "hookline.hook": outcome.hook, "hookline.source": outcome.source,
                "hookline.status": str(outcome.status), "hookline.decision": str(outcome.decision),
                "process.exit.code": outcome.exit_code,
            })  # fmt: skip
            span = self._tracer.start_span(
                f"hook {outcome.hook}", context=context, start_time=at, attributes=attributes
            )
            if not outcome.ok:
                span.set_attribute("error.type", str(outcome.status))
                span.set_status(self._trace.StatusCode.ERROR, outcome.error)
            span.end(end)
            at = end

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

    # -- metrics -------------------------------------------------------------------------------------------------

    def _count(self, verdict: Verdict) -> None:
        labels = {"hookline.event": verdict.event.event_name}
        tool = verdict.event.tool_name
        if tool:
            labels["gen_ai.tool.name"] = tool
        self._verdicts.add(1, {**labels, "hookline.decision": str(verdict.decision)})
        for outcome in _runs(verdict):
            mine = {**labels, "hookline.hook": outcome.hook}
            self._duration.record(outcome.ms / 1000, mine)
            if not outcome.ok:
                self._failures.add(1, {**mine, "error.type": str(outcome.status)})


def _runs(verdict: Verdict) -> list[Outcome]:
    return [outcome for outcome in verdict.outcomes if outcome.status is not Status.SKIPPED]


def _nanoseconds(outcome: Outcome) -> int:
    return int(outcome.ms * 1e6)


def _said(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value not in (None, "")}


def _who(verdict: Verdict) -> dict[str, Any]:
    event = verdict.event
    return _said({
        "gen_ai.conversation.id": event.session_id, "gen_ai.agent.id": event.agent_id,
        "gen_ai.agent.name": event.agent_type,
    })  # fmt: skip
