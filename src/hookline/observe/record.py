"""From a verdict to the record that is written of it. Pure but for what is handed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hookline.engine import Outcome, Verdict
from hookline.replies import Decision

MOST_TEXT = 4_000
Redactor = Callable[[str], str]


def record(verdict: Verdict, *, user: str = "", redact: Redactor = str) -> dict[str, Any]:
    """Time, run, agent, event, tool, decision, who decided and why, durations, user; secrets taken out."""
    event = verdict.event
    outcomes = verdict.outcomes
    body: dict[str, Any] = {
        "time": event.timestamp.isoformat(timespec="milliseconds"),
        "run": event.session_id,
        "user": user,
        "agent": event.agent_id,
        "agent_type": event.agent_type,
        "cwd": event.cwd,
        "event": event.event_name,
        "subject": event.subject,
        "tool": getattr(event, "tool_name", None),
        "tool_use_id": getattr(event, "tool_use_id", None),
        "decision": str(verdict.decision),
        "blocked": verdict.blocked,
        "by": verdict.decided_by,
        "reasons": list(verdict.reply.reasons) or _other_reasons(verdict),
        "ms": round(sum(outcome.ms for outcome in outcomes), 3),
        "hooks": [_hook(outcome) for outcome in outcomes],
        **_payload(verdict),
    }
    said: dict[str, Any] = redacted({key: v for key, v in body.items() if v not in (None, "", [])}, redact)
    return said


def _other_reasons(verdict: Verdict) -> list[str]:
    return [verdict.reason] if verdict.reason else []


def _hook(outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"hook": outcome.hook, "status": str(outcome.status), "ms": round(outcome.ms, 3)}
    if outcome.decision is not Decision.PASS:
        row["decision"] = str(outcome.decision)
    if outcome.exit_code is not None:
        row["exit_code"] = outcome.exit_code
    if outcome.error is not None:
        row["error"] = outcome.error
    return row


_PAYLOAD = {
    "tool_input": "input",
    "tool_response": "result",
    "error": "error",
    "prompt": "prompt",
    "source": "source",
    "reason": "reason",
    "trigger": "trigger",
    "message": "message",
    "duration_ms": "duration_ms",
}


def _payload(verdict: Verdict) -> dict[str, Any]:
    """What the event was about, by the words people look for; the rewritten input beside the one it replaced."""
    said = {word: getattr(verdict.event, field) for field, word in _PAYLOAD.items() if hasattr(verdict.event, field)}
    if verdict.reply.input is not None:
        said["rewritten"] = verdict.reply.input
    flags = {"stop": verdict.stop, "keep_going": verdict.keep_going}
    return {**said, **{name: True for name, on in flags.items() if on}}


def redacted(value: Any, redact: Redactor) -> Any:
    """A JSON value with every text bounded and its secrets taken out, keys included."""
    if isinstance(value, str):
        return redact(_bounded(value))
    if isinstance(value, dict):
        return {redact(_bounded(str(key))): redacted(item, redact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted(item, redact) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return redact(_bounded(str(msgspec.to_builtins(value, enc_hook=repr))))


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}… ({len(text):,} characters)"
