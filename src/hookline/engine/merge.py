"""OUTCOMES → VERDICT: a fold over replies in configured order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

import msgspec

from hookline.engine.outcome import Outcome
from hookline.engine.verdict import Verdict
from hookline.events import Event
from hookline.replies import NOTHING, Decision, Reply


def merge(event: Event, outcomes: Sequence[Outcome]) -> Verdict:
    """One verdict of all outcomes; which decision wins never depends on their order."""
    return Verdict(event, merge_replies(outcome.reply for outcome in outcomes), told=tuple(outcomes))


def merge_replies(replies: Iterable[Reply]) -> Reply:
    """`|` over all replies, in order."""
    spoken = [reply for reply in replies if reply is not NOTHING]
    return reduce(or_, spoken) if spoken else NOTHING


def second_judgement(first: Reply, second: Reply) -> Reply:
    """What counts of a hook that judged twice, because the input was rewritten after its first judgement (law 4).

    An allow was for the old input and is forgotten; what was stricter stays. What it says twice is said once, and a
    rewrite of the second round is not applied: everybody has judged the input as it now is.
    """
    kept = msgspec.structs.replace(
        first, input=None, **({} if first.decision > Decision.ALLOW else {"decision": Decision.PASS, "reasons": ()})
    )
    fresh = msgspec.structs.replace(
        second,
        input=None,
        context=tuple(text for text in second.context if text not in first.context),
        messages=tuple(text for text in second.messages if text not in first.messages),
        reasons=tuple(why for why in second.reasons if kept.decision != second.decision or why not in kept.reasons),
    )
    return kept | fresh
