"""How several answers become one verdict, and whether it counts: profiles, unanimity, who lifts an ask, evaluation."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from hookline.core.engine.verdict import Approval, Outcome, RunnerResult, Status, Verdict, outcome_of
from hookline.core.hooks.hook import Hook
from hookline.core.wire.output_types import no, only_decision
from hookline.core.wire.strict import decode_mapping
from hookline.errors import HookCancelled, HookError, HookExited, HookFailed, HookTimeout, ReplyError, did_you_mean
from hookline.events import Event, EventSpec
from hookline.events.base import freeze
from hookline.replies import NOTHING, WORDS, Decision, Reply, allow, check_fits, check_types, deny, only_decides


def parse_decision(answer: Any, spec: EventSpec) -> Reply | None:
    """The reply of an answer that decides and says nothing else, as most do that speak; any other is `None`."""
    if answer.__class__ is Reply:
        return answer if only_decides(answer) and WORDS[answer.decision] in spec.decisions else None
    return only_decision(answer, spec.name) if answer.__class__ is dict else None


def decision_parser(spec: EventSpec) -> Callable[[Any], Reply | None]:
    """`parse_decision` for one event; the very reply it read last is not read again, since replies do not change."""
    last: Reply | None = None

    def parse(answer: Any) -> Reply | None:
        nonlocal last
        if last is not None and answer is last:
            return last
        reply = parse_decision(answer, spec)
        last = reply if reply is answer else last
        return reply

    return parse


def parse_answer(answer: Any, spec: EventSpec) -> RunnerResult:
    """A raw answer as a checked reply; what does not fit is a `ReplyError`."""
    decided = parse_decision(answer, spec)
    if decided is not None:
        return RunnerResult(reply=decided)
    if isinstance(answer, RunnerResult):
        result = answer
    elif answer is None or isinstance(answer, Reply):
        result = RunnerResult(reply=answer)
    elif isinstance(answer, Mapping):
        result = RunnerResult(reply=decode_mapping(answer, spec.name))
    else:
        raise ReplyError(_not_an_answer(answer))
    reply = result.reply
    if reply is None or reply is NOTHING:
        return result
    check_types(reply)
    check_fits(reply, spec.name, spec.decisions, spec.fields)
    if reply.input is None:
        return result
    frozen = msgspec.structs.replace(reply, input=freeze(reply.input))  # what is judged from here on is what runs
    return msgspec.structs.replace(result, reply=frozen)


def _not_an_answer(answer: Any) -> str:
    """What is wrong with an answer that cannot be read, and what to write."""
    if inspect.iscoroutine(answer):
        answer.close()
        return "answered with a coroutine it never awaited; write `return await …`"
    if callable(answer):
        return f'answered with `{getattr(answer, "__name__", answer)}` itself; call it: `return deny("…")`'
    if isinstance(answer, str):
        return 'answered with a text; return `deny("…")` to block, or `context("…")` to tell the model'
    say = 'return None to say nothing, or a reply such as `deny("…")`'
    return f"answered with `{type(answer).__name__}`; {say}"


def failure_outcome(hook: Hook, event: Event, spec: EventSpec, error: BaseException, ms: float) -> Outcome:
    """A run that went wrong, with its consequence: the one place that knows fail-open from fail-closed (law 3)."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot even be shown is a failure like any other
        said = "(its text cannot be shown)"
    problem = said if isinstance(error, (HookFailed, ReplyError)) else _raised(error, said)
    reply, printed = NOTHING, str(getattr(error, "stderr", ""))
    if hook.fails_closed(event) and "deny" in spec.decisions:
        what = f"`{event.subject}`" if event.subject else event.event_name
        reason = f"hook `{hook.name}` {problem}; it fails closed, so {what} was denied\n{printed.strip()}"
        reply = deny(reason.rstrip())
    status = Status.TIMEOUT if isinstance(error, HookTimeout) else Status.FAILED
    if isinstance(error, HookExited) and error.exit_code == 2:
        reply = no(spec.name, error.message or f"hook `{hook.name}` {problem}") or reply
    return outcome_of(
        hook, event, reply=reply, ms=ms, error=problem,
        status=Status.CANCELLED if isinstance(error, HookCancelled) else status,
        exit_code=getattr(error, "exit_code", None), stdout=getattr(error, "stdout", ""), stderr=printed,
    )  # fmt: skip


def as_failure(error: BaseException) -> Exception:
    """What a hook raised, as the failure it is: no exit and no cancellation of its own leaves `fire`."""
    if isinstance(error, asyncio.CancelledError):
        return HookCancelled("cancelled itself before it replied")
    if isinstance(error, SystemExit):
        return HookExited(error.code, getattr(error, "__notes__", ()))
    return error if isinstance(error, Exception) else HookFailed(_raised(error, str(error)))


def _raised(error: BaseException, said: str) -> str:
    """An exception in one phrase; many say nothing but their name."""
    return f"raised {type(error).__name__}{f': {said}' if said else ''}"


log: logging.Logger = logging.getLogger("hookline.engine")

Order = Literal[
    "sequential", "parallel", "sequential/first_deny", "sequential/run_all", "parallel/strictest", "parallel/unanimous",
]  # fmt: skip
"""How the hooks of an event are asked; the names with a slash are those of AGENT-HOOKS' composition profiles."""

Mode = Literal["enforce", "evaluate_only"]  # whether verdicts count, or are only made and recorded

Resolution = Reply | Approval | bool | None
OnAsk = Callable[[Verdict], Resolution | Awaitable[Resolution]]
"""A function that can say yes: gets the verdict of `ask`, answers `True`, `False`, who it was, or a reply."""

answer_seconds: ContextVar[float | None] = ContextVar("answer_seconds", default=None)
"""How long `on_ask` may take, for one that can wait: after that the answer is no."""

RUN_ALL: Final = "sequential/run_all"
UNANIMOUS: Final = "parallel/unanimous"
_SHORT: Mapping[str, Order] = MappingProxyType({
    "sequential": "sequential", "sequential/first_deny": "sequential", RUN_ALL: RUN_ALL,
    "parallel": "parallel", "parallel/strictest": "parallel", UNANIMOUS: UNANIMOUS,
})  # fmt: skip


def checked_order(order: str) -> Order:
    """The order by its short name; an unknown one is refused."""
    if order not in _SHORT:
        known = ", ".join(f"`{name}`" for name in _SHORT)
        raise HookError(f"order must be one of {known}, got `{order}`{did_you_mean(order, _SHORT)}")
    return _SHORT[order]


def disagreement(outcomes: Sequence[Outcome]) -> Reply:
    """A deny if hooks that decided something did not all decide the same; silence is not a vote."""
    inputs = {outcome.hook: outcome.reply.input for outcome in outcomes if outcome.reply.input is not None}
    voted = [outcome for outcome in outcomes if outcome.hook in inputs or outcome.decision is not Decision.PASS]
    said = {outcome.hook: "rewrite" if outcome.hook in inputs else str(outcome.decision) for outcome in voted}
    first, *others = inputs.values() or [None]
    if len(set(said.values())) < 2 and all(one == first for one in others):
        return NOTHING
    return deny(f"the hooks disagree: {', '.join(f'`{hook}` says {word}' for hook, word in said.items())}")


async def lifted(verdict: Verdict, on_ask: OnAsk, seconds: float | None = None) -> Verdict:
    """The verdict of `ask` as it was resolved: let through, or denied; who does not answer has denied.

    An `on_ask` that has no one to ask answers `NotImplemented`: then it stays an `ask`.
    """
    limit = answer_seconds.set(seconds)
    try:
        async with asyncio.timeout(seconds):
            answer = on_ask(verdict)
            answer = await answer if inspect.isawaitable(answer) else answer
    except TimeoutError:
        answer = deny("no answer came in time")
    except Exception as problem:
        log.exception("on_ask failed")
        answer = deny(f"on_ask failed: {type(problem).__name__}: {problem}")
    finally:
        answer_seconds.reset(limit)
    if answer is NotImplemented:
        return verdict
    if isinstance(answer, Approval):
        verdict.approval, answer = answer, answer.reply
    if answer is True:
        answer = allow()
    if not isinstance(answer, Reply) or (answer.decision is not Decision.ALLOW or answer.stop):
        reason = answer.reason if isinstance(answer, Reply) else ""
        return resolved(verdict, deny(f"not approved: {reason or verdict.reason or 'a hook asked'}"))
    return resolved(verdict, answer)


def resolved(verdict: Verdict, answer: Reply) -> Verdict:
    """The verdict with the answer in place of its question; what else the hooks said stays."""
    asked = msgspec.structs.replace(verdict.reply, decision=Decision.PASS, reasons=())
    outcome = Outcome(hook="on_ask", source="", event=verdict.event.event_name, reply=answer)
    return msgspec.structs.replace(verdict, reply=asked | answer, known=(*verdict.outcomes, outcome))


def unenforced(verdict: Verdict) -> Verdict:
    """The verdict as it is handed out where nothing is enforced: it says nothing, and keeps what it would have said."""
    return msgspec.structs.replace(verdict, reply=NOTHING, known=verdict.outcomes, evaluated=verdict.reply)


def unenforced_outcome(outcome: Outcome) -> Outcome:
    """The outcome of a hook that is only evaluated: it says nothing, and its note what it would have said."""
    said = outcome.reply
    if said == NOTHING:
        return outcome
    word = "stop" if said.stop else "rewrite" if said.decision is Decision.PASS and said.input is not None else ""
    why = f": {'; '.join(said.reasons)}" if said.reasons else ""
    note = f"only evaluated: would {word or said.decision}{why}"
    return msgspec.structs.replace(outcome, reply=NOTHING, note=note, would=str(word or said.decision))


def merge(event: Event, outcomes: Sequence[Outcome]) -> Verdict:
    """One verdict of all outcomes; which decision wins never depends on their order."""
    return Verdict(event, reduce(or_, (outcome.reply for outcome in outcomes), NOTHING), known=tuple(outcomes))


def judged_again(first: Outcome, second: Outcome | None, event: Event) -> Outcome:
    """The outcome of a hook whose first judgement was of an older input; `second` is what it says of the one that runs.

    `None` is for hooks that were not asked again. A failure of either judgement stays on record.
    """
    if second is None:
        kept = second_judgement(first.reply, NOTHING)
        if kept == first.reply:
            return first
        return msgspec.structs.replace(first, reply=kept, note="judged an older input")
    wants_more = second.reply.input is not None and second.reply.input != event.tool_input
    worse = first if second.ok and not first.ok else second
    note = "judged twice; its second rewrite was not applied" if wants_more else "judged the rewritten input too"
    return msgspec.structs.replace(
        second, status=worse.status, error=worse.error, ms=first.ms + second.ms, note=note,
        reply=second_judgement(first.reply, second.reply),
    )  # fmt: skip


def asked_late(outcome: Outcome) -> Outcome:
    """The outcome of a hook whose condition holds only for the rewritten input; it cannot rewrite that once more."""
    applied = outcome.reply.input is None
    note = "asked about the rewritten input" if applied else "asked late; its own rewrite was not applied"
    reply = msgspec.structs.replace(outcome.reply, input=None)
    return msgspec.structs.replace(outcome, reply=reply, note=outcome.note or note)


def second_judgement(first: Reply, second: Reply) -> Reply:
    """What counts of a hook that judged twice, because the input was rewritten after its first judgement (law 4).

    An allow was for the old input and is forgotten; what was stricter stays. What it says twice is said once, and a
    rewrite of the second round is not applied: all hooks have judged the input as it now is.
    """
    kept = msgspec.structs.replace(first, input=None)
    if first.decision <= Decision.ALLOW:  # without its allow, and the permissions it granted with it
        more = first.specific and msgspec.structs.replace(first.specific, updated_permissions=())
        kept = msgspec.structs.replace(kept, decision=Decision.PASS, reasons=(), specific=more)
    fresh = msgspec.structs.replace(
        second,
        input=None,
        specific=None if second.specific == kept.specific else second.specific,
        context=tuple(text for text in second.context if text not in first.context),
        messages=tuple(text for text in second.messages if text not in first.messages),
        reasons=tuple(why for why in second.reasons if kept.decision != second.decision or why not in kept.reasons),
    )
    return kept | fresh
