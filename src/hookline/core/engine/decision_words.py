"""What a verdict comes to, in one word: the same on the terminal, in the audit log and in a report. Pure."""

from __future__ import annotations

from typing import Literal

Word = Literal["DENY", "STOP", "ASK", "DEFER", "ALLOW", "KEEP GOING", "REWRITE", "REPLACE", "PASS"]

MEANINGS: dict[Word, str] = {
    "DENY": "it does not happen",
    "STOP": "the agent's turn ends; what the event announces does not happen either",
    "ASK": "a person is asked first",
    "DEFER": "it waits until somebody decides",
    "ALLOW": "it happens, and nobody is asked",
    "KEEP GOING": "the agent wanted to stop and is sent back to work",
    "REWRITE": "it happens with another input",
    "REPLACE": "the model is given another output",
    "PASS": "no hook decided",
}
"""Every word, the strictest first."""

_DECISIONS: dict[str, Word] = {"deny": "DENY", "ask": "ASK", "defer": "DEFER", "allow": "ALLOW"}


def decision_word(
    decision: str, *, stop: bool = False, keep_going: bool = False, rewritten: bool = False, replaced: bool = False
) -> Word:
    """The word for a verdict of these properties; of several that fit, the first in `MEANINGS`."""
    said: dict[Word, bool] = {"STOP": stop, "KEEP GOING": keep_going, "REWRITE": rewritten, "REPLACE": replaced}
    true = {word for word, holds in said.items() if holds} | {_DECISIONS.get(decision, "PASS")}
    return next(word for word in MEANINGS if word in true)
