"""OUTCOMES → VERDICT: a fold over replies in configured order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

import msgspec

from hookline.core.engine.outcome import Outcome
from hookline.core.engine.verdict import Verdict
from hookline.events import Event
from hookline.replies import NOTHING, Decision, Reply


def merge(event: Event, outcomes: Sequence[Outcome]) -> Verdict:
    """One verdict of all outcomes; which decision wins never depends on their order."""
    return Verdict(event, merge_replies(outcome.reply for outcome in outcomes), known=tuple(outcomes))


def merge_replies(replies: Iterable[Reply]) -> Reply:
    """`|` over all replies, in order."""
    spoken = [reply for reply in replies if reply is not NOTHING]
    return reduce(or_, spoken) if spoken else NOTHING


def judged_again(first: Outcome, second: Outcome | None, event: Event) -> Outcome:
    """The outcome of a hook whose first judgement was of an older input; `second` is what it says of the one that runs.

    `None` is for hooks that were not asked again. A failure of either judgement stays on record.
    """
    if second is None:
        kept = second_judgement(first.reply, NOTHING)
        changed = kept != first.reply
        return msgspec.structs.replace(first, reply=kept, note="judged an older input") if changed else first
    wants_more = second.reply.input is not None and second.reply.input != event.tool_input
    worse = first if second.ok and not first.ok else second
    return msgspec.structs.replace(
        second,
        status=worse.status,
        error=worse.error,
        reply=second_judgement(first.reply, second.reply),
        ms=first.ms + second.ms,
        note="judged twice; its second rewrite was not applied" if wants_more else "judged the rewritten input too",
    )


def asked_late(outcome: Outcome) -> Outcome:
    """The outcome of a hook whose condition holds only for the rewritten input; it cannot rewrite that once more."""
    reply = outcome.reply if outcome.reply.input is None else msgspec.structs.replace(outcome.reply, input=None)
    applied = reply is outcome.reply
    note = "asked about the rewritten input" if applied else "asked late; its own rewrite was not applied"
    return msgspec.structs.replace(outcome, reply=reply, note=outcome.note or note)


def second_judgement(first: Reply, second: Reply) -> Reply:
    """What counts of a hook that judged twice, because the input was rewritten after its first judgement (law 4).

    An allow was for the old input and is forgotten; what was stricter stays. What it says twice is said once, and a
    rewrite of the second round is not applied: all hooks have judged the input as it now is.
    """
    kept = msgspec.structs.replace(first if first.decision > Decision.ALLOW else _without_allow(first), input=None)
    fresh = msgspec.structs.replace(
        second,
        input=None,
        specific=None if second.specific == kept.specific else second.specific,
        context=tuple(text for text in second.context if text not in first.context),
        messages=tuple(text for text in second.messages if text not in first.messages),
        reasons=tuple(why for why in second.reasons if kept.decision != second.decision or why not in kept.reasons),
    )
    return kept | fresh


def _without_allow(reply: Reply) -> Reply:
    """The reply without its allow and the permissions it granted with it."""
    more = reply.specific
    more = None if more is None else msgspec.structs.replace(more, updated_permissions=())
    return msgspec.structs.replace(reply, decision=Decision.PASS, reasons=(), specific=more)
