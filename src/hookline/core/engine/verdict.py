"""What all hooks together say, who decided, and the outcomes behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from textwrap import wrap
from typing import Any, Literal, NamedTuple

import msgspec

from hookline.core.hooks.hook import Hook
from hookline.display import lines, one_line
from hookline.events import Event, spec_of
from hookline.events.base import thaw
from hookline.replies import NOTHING, Decision, Reply, allow, deny


class Status(StrEnum):
    """How a run ended."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    BACKGROUND = "background"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One hook's reply or failure, with its time.

    `reply` already carries the consequence of a failure (a deny, where the hook fails closed), so merging never has to
    know why. `note` says what else a person should know, such as why a hook was skipped.
    """

    hook: str
    source: str = "code"
    event: str = ""
    status: Status = Status.OK
    reply: Reply = NOTHING
    ms: float = 0.0
    exit_code: int | None = None
    error: str | None = None
    note: str | None = None
    would: str | None = None  # what a hook that is only evaluated would have decided
    stdout: str = ""
    stderr: str = ""

    @property
    def decision(self) -> Decision:
        """What it decided."""
        return self.reply.decision

    @property
    def ok(self) -> bool:
        """Whether the hook did its work."""
        return self.error is None

    def to_dict(self) -> dict[str, Any]:
        """The shape `hookline fire --json` prints."""
        return {
            "hook": self.hook, "source": self.source, "status": str(self.status), "decision": str(self.decision),
            "ms": round(self.ms, 3), "exit_code": self.exit_code, "error": self.error,
        }  # fmt: skip


def outcome_of(hook: Hook, event: Event, **more: Any) -> Outcome:
    """The outcome of a hook on an event."""
    return Outcome(hook=hook.name, source=hook.source, event=event.event_name, **more)


class RunnerResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner brings back: the reply, and what else is known of the run."""

    reply: Reply | None = None
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""


Answer = RunnerResult | Reply | Mapping[str, Any] | None  # what one run may come back with


Word = Literal["DENY", "STOP", "ASK", "DEFER", "ALLOW", "KEEP GOING", "REWRITE", "REPLACE", "PASS"]


class WordStyle(NamedTuple):
    """What a word means, and its colour on a page and on a terminal."""

    meaning: str
    page: str
    terminal: str


WORDS: dict[Word, WordStyle] = {
    "DENY": WordStyle("it does not happen", "#c4282d", "red"),
    "STOP": WordStyle("the agent's turn ends; what the event announces does not happen either", "#b3420e", "red"),
    "ASK": WordStyle("a person is asked first", "#8a5a00", "yellow"),
    "DEFER": WordStyle("it waits until a person decides", "#8a5a00", "yellow"),
    "ALLOW": WordStyle("it happens without a question", "#13733f", "green"),
    "KEEP GOING": WordStyle("the agent wanted to stop and is sent back to work", "#1260b0", "blue"),
    "REWRITE": WordStyle("it happens with another input", "#6b3fc9", "magenta"),
    "REPLACE": WordStyle("the model is given another output", "#6b3fc9", "magenta"),
    "PASS": WordStyle("no hook decided", "#566573", "dim"),
}  # every word that a verdict comes to, the strictest first

_DECISIONS: dict[str, Word] = {"deny": "DENY", "ask": "ASK", "defer": "DEFER", "allow": "ALLOW"}


def decision_word(
    decision: str, *, stop: bool = False, keep_going: bool = False, rewritten: bool = False, replaced: bool = False
) -> Word:
    """The word for a verdict of these properties; of several that fit, the strictest."""
    said: dict[Word, bool] = {"STOP": stop, "KEEP GOING": keep_going, "REWRITE": rewritten, "REPLACE": replaced}
    true = {word for word, holds in said.items() if holds} | {_DECISIONS.get(decision, "PASS")}
    return next(word for word in WORDS if word in true)


WIDTH = 80
_LONGEST_NAME, _LONGEST_REPR, _LONGEST_CELL = 24, 200, 500
_MOST_LINES = 3
_SIGNS = {Status.OK: "✓", Status.SKIPPED: "·", Status.BACKGROUND: "…"}


def _explained(verdict: Verdict, width: int) -> str:
    """The headline, hooks and effects; others' words stand behind a bar or in a column, not to look like our lines."""
    longest = max((len(outcome.hook) for outcome in verdict.outcomes), default=0)
    deciders = (verdict.decided_by or "").split(", ")
    text = _folded(_heading(verdict), width, "  │ ")
    for outcome in verdict.outcomes:
        sign = "►" if outcome.hook in deciders else _SIGNS.get(outcome.status, "✗") if outcome.ok else "✗"
        text += _outcome_lines(outcome, sign, min(longest, _LONGEST_NAME), width)
    return "\n".join([*text, *_effects(verdict.reply, width)])


def _heading(verdict: Verdict) -> str:
    event, word = verdict.event, verdict.word
    about = f"{event.event_name}({one_line(event.subject)})" if event.subject else event.event_name
    how = " (no hook applies)" if word == "PASS" and not verdict.outcomes else ""
    by = f" by {one_line(verdict.decided_by)}" if verdict.decided_by else ""
    why = f": {verdict.reason}" if verdict.reason else ""
    return f"{about} → {word}{' (only evaluated)' if verdict.evaluated is not None else how}{by}{why}"


def _took(outcome: Outcome) -> str:
    return "" if outcome.status is Status.SKIPPED else f"{outcome.ms:.1f} ms"


def _outcome_lines(outcome: Outcome, sign: str, column: int, width: int) -> Iterator[str]:
    name = one_line(outcome.hook, column)
    room = width - len(f"  {sign} ") - column - 2 - 11
    first, *more = _few(wrap(one_line(said(outcome)), room), room)
    yield f"  {sign} {name:<{column}}  {first:<{room}} {_took(outcome):>10}".rstrip()
    for line in more:
        yield f"    {'':<{column}}  {line}"


def said(outcome: Outcome) -> str:
    """What one hook answered, or what went wrong with it, in words."""
    note = [outcome.note] if outcome.note else []
    if outcome.error:
        consequence = " → deny" if outcome.decision is Decision.DENY else ""
        return ", ".join([f"{outcome.status}{consequence}: {outcome.error.strip().partition(chr(10))[0]}", *note])
    if outcome.status is not Status.OK:
        return f"{outcome.status}{f' ({outcome.note})' if outcome.note else ''}"
    return ", ".join([*(_decision_words(outcome.reply) or ["nothing to say"]), *note])


def _decision_words(reply: Reply) -> list[str]:
    words = {
        f"{reply.decision}{f': {reply.reason}' if reply.reason else ''}": reply.decision is not Decision.PASS,
        "rewrote the input": reply.input is not None,
        "replaced the output": reply.output is not msgspec.UNSET,
        "stop": reply.stop,
        "keep going": reply.keep_going,
        "context": bool(reply.context),
        "message": bool(reply.messages),
        "more": reply.specific is not None,
    }
    return [word for word, true in words.items() if true]


def _effects(reply: Reply, width: int) -> Iterator[str]:
    said: list[tuple[str, Any]] = [
        *([("input", reply.input)] if reply.input is not None else []),
        *([("output", reply.output)] if reply.output is not msgspec.UNSET else []),
        *(("context", text) for text in reply.context),
        *(("message", text) for text in reply.messages),
    ]
    for name, value in said:
        first, *more = _few(_folded(str(value), width - 10), width - 10)
        yield f"  {name:<7} {first}".rstrip()
        yield from (f"{'':<10}{line}" for line in more)


def _folded(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines of at most `width`; its own line breaks are kept."""
    folded: list[str] = []
    for number, line in enumerate(lines(text)):
        first = indent if number else ""
        folded += wrap(line, width, initial_indent=first, subsequent_indent=indent) or [first.rstrip()]
    return folded


def _few(folded: list[str], width: int) -> list[str]:
    """The first lines; the last of them says if more were left out."""
    if len(folded) <= _MOST_LINES:
        return folded
    return [*folded[: _MOST_LINES - 1], folded[_MOST_LINES - 1][: width - 1].rstrip() + "…"]


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

    @property
    def reply(self) -> Reply:
        """What the answer lets happen."""
        return allow(self.reason) if self.granted else deny(self.reason)


class Verdict(msgspec.Struct):
    """The merged reply to one event.

    `blocked` is what an agent asks first; `input` is what to run, rewritten or not. `str(verdict)` is one line,
    `explain()` tells the whole story.
    """

    event: Event
    reply: Reply
    chosen: tuple[Hook, ...] = ()
    started: float = 0.0
    answered: float | list[float] = 0.0
    known: tuple[Outcome, ...] | None = None
    evaluated: Reply | None = None
    """What the hooks said, in a set that only evaluates: nothing of it counts."""
    approval: Approval | None = None
    """Who answered what the hooks asked, where that is known."""

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
        would = {name: getattr(self._judged, name) for name in ("blocked", "reason", "decided_by", "word")}
        return {
            "event": self.event.event_name,
            "decision": str(self.decision),
            **{name: getattr(self, name) for name in plain},
            "context": list(self.context),
            "messages": list(self.messages),
            "suppress_output": self.suppress_output,
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            **({} if self.evaluated is None else {"evaluated": would}),
        }

    @property
    def _judged(self) -> Verdict:
        """The verdict with what the hooks said, whether it counts or not; `evaluated` is what it is shown by."""
        return self if self.evaluated is None else msgspec.structs.replace(self, reply=self.evaluated)

    def __str__(self) -> str:
        return one_line(_heading(self._judged))

    def __repr__(self) -> str:
        looked_at = msgspec.structs.replace(self)  # looking at it must not change it
        return f"<Verdict {one_line(one_line(_heading(looked_at)), _LONGEST_REPR)}>"

    def _repr_html_(self) -> str:  # a small table for notebooks: the verdict, then a row per hook
        from html import escape  # its tables are not worth loading where no notebook is

        def text(words: str) -> str:
            return escape(one_line(words, _LONGEST_CELL))

        rows = ""
        for outcome in self.outcomes:
            cells = (f"<b>{text(outcome.hook)}</b>", text(said(outcome)), _took(outcome))
            rows += "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"
        colour = WORDS[self.word].page
        table = f'<table style="margin:.4em 0;text-align:left">{rows}</table>' if rows else ""
        mark = f'<b style="color:#fff;background:{colour};border-radius:.6em;padding:0 .6em">{self.word}</b>'
        body = f"{mark} {text(one_line(_heading(self)))}{table}"
        return f'<div style="border-left:4px solid {colour};padding-left:.8em">{body}</div>'

    def __rich__(self) -> Any:
        """The explanation, its first line in the verdict's colour."""
        from rich.text import Text

        first, _, rest = _explained(self, WIDTH).partition("\n")
        shown = Text(first, style=f"bold {WORDS[self.word].terminal}")
        return shown.append(f"\n{rest}", style="default not bold") if rest else shown

    def explain(self, width: int = WIDTH) -> str:
        """Every hook, what it said, how long it took, and who won, as a text for people, `width` columns wide."""
        return _explained(self._judged, width)


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
    """The outcomes of hooks that answered at once: all but the last with nothing, and the rest, if any, skipped."""
    answered = len(marks) - 1  # the first is the time before them
    made = []
    for position, hook in enumerate(chosen):
        said = reply if position == answered - 1 else NOTHING
        if position < answered:
            made.append(outcome_of(hook, event, reply=said, ms=(marks[position + 1] - marks[position]) * 1000))
        else:
            why = ended_by(chosen[answered - 1].name, reply)
            made.append(outcome_of(hook, event, status=Status.SKIPPED, note=why))
    return tuple(made)


def ended_by(hook: str, reply: Reply) -> str:
    """Why the hooks after `hook` were not asked."""
    return f"`{hook}` {'denied' if reply.decision is Decision.DENY else 'stopped'}"
