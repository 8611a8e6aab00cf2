"""A verdict as text for people: one word, one line, an explanation in 80 columns, a table in Jupyter, colour with rich.

Pure. What hooks and agents wrote is text everywhere: no markup and no control character of theirs takes effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from hookline.core.engine.outcome import Outcome, Status
from hookline.display import lines, one_line
from hookline.events import Event
from hookline.replies import Decision, Reply

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
}
"""Every word that a verdict comes to, the strictest first."""

_DECISIONS: dict[str, Word] = {"deny": "DENY", "ask": "ASK", "defer": "DEFER", "allow": "ALLOW"}


def decision_word(
    decision: str, *, stop: bool = False, keep_going: bool = False, rewritten: bool = False, replaced: bool = False
) -> Word:
    """The word for a verdict of these properties; of several that fit, the strictest."""
    said: dict[Word, bool] = {"STOP": stop, "KEEP GOING": keep_going, "REWRITE": rewritten, "REPLACE": replaced}
    true = {word for word, holds in said.items() if holds} | {_DECISIONS.get(decision, "PASS")}
    return next(word for word in WORDS if word in true)


class Explainable(Protocol):
    """What there is to tell of a verdict."""

    @property
    def event(self) -> Event: ...
    @property
    def reply(self) -> Reply: ...
    @property
    def word(self) -> Word: ...
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
_LONGEST_REPR = 200
_LONGEST_CELL = 500
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


# -- where values are looked at: a traceback, a notebook, rich --------------------------------------------------------


def short(verdict: Explainable) -> str:
    """One line that says what it is."""
    return f"<Verdict {one_line(headline(verdict), _LONGEST_REPR)}>"


def html(verdict: Explainable) -> str:
    """A small table for notebooks: the verdict, then a row per hook."""
    colour = WORDS[verdict.word].page
    rows = "".join(_row(outcome) for outcome in verdict.outcomes)
    table = f'<table style="margin:.4em 0;text-align:left">{rows}</table>' if rows else ""
    mark = f'<b style="color:#fff;background:{colour};border-radius:.6em;padding:0 .6em">{verdict.word}</b>'
    body = f"{mark} {_text(headline(verdict))}{table}"
    return f'<div style="border-left:4px solid {colour};padding-left:.8em">{body}</div>'


def _row(outcome: Outcome) -> str:
    took = "" if outcome.status is Status.SKIPPED else f"{outcome.ms:.1f} ms"
    cells = (f"<b>{_text(outcome.hook)}</b>", _text(said(outcome)), took)
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def _text(text: str) -> str:
    from html import escape  # its tables are not worth loading where no notebook is

    return escape(one_line(text, _LONGEST_CELL))


def rich(verdict: Explainable) -> Any:
    """What `rich.print(verdict)` shows: the explanation, its first line in the verdict's colour."""
    from rich.text import Text

    first, _, rest = explained(verdict).partition("\n")
    shown = Text(first, style=f"bold {WORDS[verdict.word].terminal}")
    return shown.append(f"\n{rest}", style="default not bold") if rest else shown
