"""A verdict as a text for people: at a glance who decided what and why, in 80 columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any, Protocol

import msgspec

from hookline.core.engine.outcome import Outcome, Status
from hookline.display import lines, one_line
from hookline.events import Event
from hookline.replies import Decision, Reply


class Explainable(Protocol):
    """What there is to tell of a verdict."""

    @property
    def event(self) -> Event: ...
    @property
    def reply(self) -> Reply: ...
    @property
    def word(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def decided_by(self) -> str | None: ...
    @property
    def outcomes(self) -> tuple[Outcome, ...]: ...
    @property
    def evaluated(self) -> Reply | None: ...


WIDTH = 80
_LONGEST_NAME = 24
_MOST_LINES = 3
_MORE = "  │ "
_SIGNS = {Status.OK: "✓", Status.SKIPPED: "·", Status.BACKGROUND: "…"}


def headline(verdict: Explainable) -> str:
    """One line: the event, the decision, who decided and why."""
    return one_line(_heading(verdict))


def explained(verdict: Explainable, width: int = WIDTH) -> str:
    """The headline in full, a line or more for each hook, then what the verdict brings with it.

    Whatever others wrote goes on behind a bar or in its own column, so that no line of theirs looks like one of these.
    """
    longest = max((len(outcome.hook) for outcome in verdict.outcomes), default=0)
    deciders = (verdict.decided_by or "").split(", ")
    text = _folded(_heading(verdict), width, _MORE)
    for outcome in verdict.outcomes:
        sign = "►" if outcome.hook in deciders else _SIGNS.get(outcome.status, "✗") if outcome.ok else "✗"
        text += _outcome_lines(outcome, sign, min(longest, _LONGEST_NAME), width)
    return "\n".join([*text, *_effects(verdict, width)])


def _heading(verdict: Explainable) -> str:
    event = verdict.event
    about = f"{event.event_name}({one_line(event.subject)})" if event.subject else event.event_name
    by = f" by {one_line(verdict.decided_by)}" if verdict.decided_by else ""
    why = f": {verdict.reason}" if verdict.reason else ""
    return f"{about} → {_word(verdict)}{by}{why}"


def _word(verdict: Explainable) -> str:
    word = verdict.word
    if verdict.evaluated is not None:
        return f"{word} (only evaluated)"
    return f"{word} (no hook applies)" if word == "PASS" and not verdict.outcomes else word


def _outcome_lines(outcome: Outcome, sign: str, column: int, width: int) -> Iterator[str]:
    name = _cut(one_line(outcome.hook), column)
    time = "" if outcome.status is Status.SKIPPED else f"{outcome.ms:.1f} ms"
    room = width - len(f"  {sign} ") - column - 2 - 11
    first, *more = _few(wrap(one_line(said(outcome)), room), room)
    yield f"  {sign} {name:<{column}}  {first:<{room}} {time:>10}".rstrip()
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


def _effects(verdict: Explainable, width: int) -> Iterator[str]:
    reply = verdict.reply
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


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
