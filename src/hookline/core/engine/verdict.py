"""What all hooks together say, who decided, and the outcomes behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from hookline.core.engine.outcome import Outcome, Status
from hookline.core.engine.render import WIDTH, Word, decision_word, explained, headline, html, rich, short
from hookline.core.hooks.hook import Hook
from hookline.events import Event, spec_of
from hookline.events.frozen import thaw
from hookline.replies import NOTHING, Decision, Reply


class JointReply(msgspec.Struct):
    """What all hooks together say to one event, and what that comes to."""

    event: Event
    reply: Reply

    @property
    def decision(self) -> Decision:
        """The strictest of all decisions."""
        return self.reply.decision

    @property
    def blocked(self) -> bool:
        """Whether what the event announces must not happen."""
        return self.reply.decision is Decision.DENY or (self.reply.stop and spec_of(self.event).gate)

    @property
    def word(self) -> Word:
        """What it comes to, in one word: `DENY`, `KEEP GOING`, `REWRITE`; the same wherever a verdict is shown."""
        return decision_word(
            str(self.decision), stop=self.stop, keep_going=self.keep_going, rewritten=self.reply.input is not None,
            replaced=self.reply.output is not msgspec.UNSET,
        )  # fmt: skip

    @property
    def reason(self) -> str:
        """Why: the reasons of all who decided, else the reason to stop or to keep going."""
        reply = self.reply
        if reply.stop and self.decision is not Decision.DENY:
            return reply.stop_reason or ""
        return reply.reason if reply.reasons else "\n".join(reply.keep_going_reasons)

    @property
    def input(self) -> dict[str, Any] | None:
        """What to call the tool with: rewritten, or as it was; `None` on events without a tool."""
        rewritten = self.reply.input
        return thaw(self.event.tool_input if rewritten is None else rewritten)  # type: ignore[no-any-return]

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
    def input_identity(self) -> str:
        """A hash of what was judged: the tool's input, its result, the prompt; empty on events without one."""
        target = _target(self.event)
        return "" if target is None else _identity(target)

    @property
    def enforced_identity(self) -> str:
        """A hash of what was let through, the same as `input_identity` if it was not changed; empty if nothing was."""
        target = _target(self.event)
        if self.blocked or target is None:
            return ""
        if self.reply.input is not None:
            return _identity(self.reply.input)
        return _identity(target if self.reply.output is msgspec.UNSET else self.reply.output)


class Approval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's answer to an `ask`: who, over what (`page`, `terminal`, `mail`), to which question, on which call.

    `on_ask` may answer with one instead of `True` or `False`; it is in the audit log's record.
    """

    by: str
    how: str = ""
    question: str = ""
    call: str = ""
    granted: bool = True
    reason: str = ""


class Verdict(JointReply):
    """The merged reply to one event.

    `blocked` is what an agent asks first; `input` is what to run, rewritten or not. `str(verdict)` is one line,
    `explain()` tells the whole story.
    """

    chosen: tuple[Hook, ...] = ()
    started: float = 0.0
    answered: float | list[float] = 0.0
    known: tuple[Outcome, ...] | None = None
    evaluated: Reply | None = None
    """What the hooks said, in a set that only evaluates: nothing of it counts."""
    approval: Approval | None = None
    """Who answered what the hooks asked, where that is known."""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """One per hook that was selected, in the order they ran."""
        if self.known is None:
            answered = self.answered if isinstance(self.answered, list) else [self.answered]
            self.known = silent_outcomes(self.event, self.reply, self.chosen, [self.started, *answered])
        return self.known

    @property
    def decided_by(self) -> str | None:
        """The names of the hooks whose answer this is, in order, joined by commas."""
        names = dict.fromkeys(outcome.hook for outcome in self.outcomes if self._decided(outcome.reply))
        return ", ".join(names) or None

    def _decided(self, reply: Reply) -> bool:
        if self.stop and self.decision is not Decision.DENY:
            return reply.stop
        if self.decision is not Decision.PASS:
            return reply.decision is self.decision
        return reply.keep_going and self.keep_going

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The runs that went wrong; on the fast path none can."""
        return () if self.known is None else tuple(outcome for outcome in self.outcomes if not outcome.ok)

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
            **({} if self.evaluated is None else {"evaluated": _said(self._judged)}),
        }

    @property
    def _judged(self) -> Verdict:
        """The verdict with what the hooks said, whether it counts or not; `evaluated` is what it is shown by."""
        return self if self.evaluated is None else msgspec.structs.replace(self, reply=self.evaluated)

    def __str__(self) -> str:
        return headline(self._judged)

    def __repr__(self) -> str:
        return short(msgspec.structs.replace(self))  # looking at it must not change it

    def _repr_html_(self) -> str:
        return html(self)

    def __rich__(self) -> Any:
        return rich(self)

    def explain(self, width: int = WIDTH) -> str:
        """Every hook, what it said, how long it took, and who won, as a text for people, `width` columns wide."""
        return explained(self._judged, width)


def _said(verdict: Verdict) -> dict[str, Any]:
    """What a verdict would have come to."""
    return {name: getattr(verdict, name) for name in ("blocked", "reason", "decided_by")} | {"word": verdict.word}


def _target(event: Event) -> Any:
    """What an event asks to be judged."""
    for name in ("tool_response", "tool_input", "prompt"):
        if name in event.__struct_fields__:
            return getattr(event, name)
    return None


def _identity(value: Any) -> str:
    """SHA-256 of a value's canonical JSON (keys sorted, no spaces, UTF-8): what has the same one is the same thing."""
    data = msgspec.json.encode(msgspec.to_builtins(value, str_keys=True, enc_hook=repr), order="sorted")
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def silent_outcomes(event: Event, reply: Reply, chosen: Sequence[Hook], marks: Sequence[float]) -> tuple[Outcome, ...]:
    """The outcomes of hooks that answered at once: all but the last with nothing, and the rest, if any, skipped.

    `marks` has the time before the first answer and after each.
    """
    answered = len(marks) - 1
    made = []
    for position, hook in enumerate(chosen):
        said = reply if position == answered - 1 else NOTHING
        names: dict[str, Any] = {"hook": hook.name, "source": hook.source, "event": event.event_name}
        if position < answered:
            made.append(Outcome(**names, reply=said, ms=(marks[position + 1] - marks[position]) * 1000))
        else:
            made.append(Outcome(**names, status=Status.SKIPPED, note=ended_by(chosen[answered - 1].name, reply)))
    return tuple(made)


def ended_by(hook: str, reply: Reply) -> str:
    """Why the hooks after `hook` were not asked."""
    return f"`{hook}` {'denied' if reply.decision is Decision.DENY else 'stopped'}"
