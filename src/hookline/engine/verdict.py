"""What all hooks together say, who decided, and the outcomes behind it."""

from __future__ import annotations

from typing import Any

import msgspec

from hookline.engine.outcome import Outcome, Status
from hookline.events import Event, spec_of
from hookline.hooks.hook import Hook
from hookline.replies import Decision, Reply


class Verdict(msgspec.Struct):
    """The merged reply to one event.

    `blocked` is what an agent asks first; `input` is what to run, rewritten or not. `str(verdict)` is one line,
    `explain()` tells the whole story.
    """

    event: Event
    reply: Reply
    silent: tuple[Hook, ...] = ()
    marks: list[float] = msgspec.field(default_factory=list)
    told: tuple[Outcome, ...] | None = None

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """One per hook that was selected, in the order they ran."""
        if self.told is None:
            spans = zip(self.silent, self.marks, self.marks[1:], strict=False)
            name = self.event.event_name
            self.told = tuple(Outcome(hook=h.name, source=h.source, event=name, ms=(b - a) * 1000) for h, a, b in spans)
        return self.told

    @property
    def decision(self) -> Decision:
        """The strictest of all decisions."""
        return self.reply.decision

    @property
    def blocked(self) -> bool:
        """Whether what the event announces must not happen."""
        return self.reply.decision is Decision.DENY or (self.reply.stop and spec_of(self.event).gate)

    @property
    def reason(self) -> str:
        """Why: the reasons of all who decided, else the reason to stop or to keep going."""
        reply = self.reply
        if reply.reasons and (self.decision is not Decision.PASS or not reply.stop):
            return reply.reason
        return (reply.stop_reason or "") if reply.stop else "\n".join(reply.keep_going_reasons)

    @property
    def decided_by(self) -> str | None:
        """The names of the hooks whose answer this is, in order, joined by commas."""
        names = dict.fromkeys(outcome.hook for outcome in self.outcomes if self._decided(outcome.reply))
        return ", ".join(names) or None

    def _decided(self, reply: Reply) -> bool:
        if self.decision is not Decision.PASS:
            return reply.decision is self.decision
        return reply.stop if self.stop else reply.keep_going and self.keep_going

    @property
    def input(self) -> dict[str, Any] | None:
        """What to call the tool with: rewritten, or as it was; `None` on events without a tool."""
        rewritten = self.reply.input
        return getattr(self.event, "tool_input", None) if rewritten is None else rewritten

    @property
    def output(self) -> Any:
        """What the tool's output is replaced with, or `None`."""
        return None if self.reply.output is msgspec.UNSET else self.reply.output

    @property
    def context(self) -> tuple[str, ...]:
        """What the model is told with its next request."""
        return self.reply.context

    @property
    def messages(self) -> tuple[str, ...]:
        """What the user is told."""
        return self.reply.messages

    @property
    def stop(self) -> bool:
        """Whether the agent's turn ends."""
        return self.reply.stop

    @property
    def stop_reason(self) -> str | None:
        """Why it ends."""
        return self.reply.stop_reason

    @property
    def keep_going(self) -> bool:
        """Whether the agent is sent back to work; a hook that stops the agent overrules this."""
        return self.reply.keep_going and not self.reply.stop

    @property
    def suppress_output(self) -> bool:
        """Whether the user is spared the output."""
        return self.reply.suppress_output

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The runs that went wrong."""
        return tuple(outcome for outcome in self.outcomes if not outcome.ok)

    def to_dict(self) -> dict[str, Any]:
        """The object `hookline fire --json` prints."""
        plain = ("blocked", "reason", "decided_by", "input", "output", "stop", "stop_reason", "keep_going")
        return {
            "event": self.event.event_name,
            "decision": str(self.decision),
            **{name: getattr(self, name) for name in plain},
            "context": list(self.context),
            "messages": list(self.messages),
            "suppress_output": self.suppress_output,
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
        }

    def __str__(self) -> str:
        return headline(self)

    def explain(self) -> str:
        """Every hook, what it said, how long it took, and who won, as a text for people."""
        lines = [headline(self), *(_outcome_line(o, self.decided_by or "") for o in self.outcomes), *_effects(self)]
        return "\n".join(lines)


def headline(verdict: Verdict) -> str:
    """One line: the event, the decision, who decided and why."""
    event = verdict.event
    about = f"{event.event_name}({event.subject})" if event.subject else event.event_name
    by = f" by {verdict.decided_by}" if verdict.decided_by else ""
    why = f": {verdict.reason}" if verdict.reason else ""
    return f"{about} → {_word(verdict)}{by}{why}"


def _word(verdict: Verdict) -> str:
    if verdict.decision is not Decision.PASS:
        return str(verdict.decision).upper()
    if verdict.stop:
        return "STOP"
    if verdict.keep_going:
        return "KEEP GOING"
    return "PASS" if verdict.outcomes else "PASS (no hook applies)"


_SIGNS = {Status.OK: "✓", Status.SKIPPED: "·", Status.BACKGROUND: "…"}


def _outcome_line(outcome: Outcome, deciders: str) -> str:
    sign = "►" if outcome.hook in deciders.split(", ") else _SIGNS.get(outcome.status, "✗")
    return f"  {sign} {outcome.hook:<24} {_said(outcome):<44} {outcome.ms:8.1f} ms"


def _said(outcome: Outcome) -> str:
    if outcome.error:
        consequence = " → deny" if outcome.decision is Decision.DENY else ""
        return f"{outcome.status}{consequence}: {outcome.error.partition(chr(10))[0]}"
    if outcome.status is not Status.OK:
        return f"{outcome.status}{f' ({outcome.note})' if outcome.note else ''}"
    words = [*_decision_words(outcome.reply), *([outcome.note] if outcome.note else [])]
    return ", ".join(words) or "nothing to say"


def _decision_words(reply: Reply) -> list[str]:
    words = (
        [] if reply.decision is Decision.PASS else [f"{reply.decision}{f': {reply.reason}' if reply.reason else ''}"]
    )
    said = {
        "rewrote the input": reply.input is not None,
        "replaced the output": reply.output is not msgspec.UNSET,
        "stop": reply.stop,
        "keep going": reply.keep_going,
        "context": bool(reply.context),
        "message": bool(reply.messages),
        "more": reply.specific is not None,
    }
    return words + [word for word, true in said.items() if true]


def _effects(verdict: Verdict) -> list[str]:
    lines = []
    if verdict.reply.input is not None:
        lines.append(f"  input   {verdict.reply.input}")
    if verdict.reply.output is not msgspec.UNSET:
        lines.append(f"  output  {verdict.reply.output}")
    lines += [f"  context {text}" for text in verdict.context]
    lines += [f"  message {text}" for text in verdict.messages]
    return lines
