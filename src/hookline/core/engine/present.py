"""A verdict where people look at values: one line in a traceback, a table in Jupyter, colour with rich.

What hooks and agents wrote is text in all of them: no markup of theirs is obeyed.
"""

from __future__ import annotations

from html import escape
from typing import Any

from hookline.core.engine.explain import Explainable, explained, headline, said
from hookline.core.engine.outcome import Outcome, Status
from hookline.display import one_line

_LONGEST_REPR = 200
_LONGEST_CELL = 500
_AMBER = ("#8a5a00", "yellow")
_VIOLET = ("#6b3fc9", "magenta")
_COLOURS = {
    "DENY": ("#c4282d", "red"), "STOP": ("#b3420e", "red"), "ASK": _AMBER, "DEFER": _AMBER,
    "ALLOW": ("#13733f", "green"), "KEEP GOING": ("#1260b0", "blue"), "REWRITE": _VIOLET, "REPLACE": _VIOLET,
    "PASS": ("#566573", "dim"),
}  # fmt: skip
"""For each word its colour on a page, and on a terminal."""


def short(verdict: Explainable) -> str:
    """One line that says what it is."""
    return f"<Verdict {one_line(headline(verdict), _LONGEST_REPR)}>"


def html(verdict: Explainable) -> str:
    """A small table for notebooks: the verdict, then a row per hook."""
    colour = _COLOURS[verdict.word][0]
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
    return escape(one_line(text, _LONGEST_CELL))


def rich(verdict: Explainable) -> Any:
    """What `rich.print(verdict)` shows: the explanation, its first line in the verdict's colour."""
    from rich.text import Text

    first, _, rest = explained(verdict).partition("\n")
    shown = Text(first, style=f"bold {_COLOURS[verdict.word][1]}")
    return shown.append(f"\n{rest}", style="default not bold") if rest else shown
