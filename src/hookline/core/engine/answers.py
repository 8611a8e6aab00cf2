"""From what a hook brought back to what counts: a checked reply, or a failure with its consequence. Pure."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hookline.core.engine.outcome import Outcome, RunnerResult, Status
from hookline.core.hooks.hook import Hook
from hookline.core.wire.decode import only_decision
from hookline.core.wire.exit_codes import no
from hookline.core.wire.strict import decode_mapping
from hookline.errors import HookCancelled, HookExited, HookFailed, HookTimeout, ReplyError
from hookline.events import Event, EventSpec
from hookline.events.frozen import freeze
from hookline.replies import NOTHING, WORDS, Reply, check_fits, check_types, deny, only_decides


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


def parse_answer(answer: Any, event: Event, spec: EventSpec) -> RunnerResult:
    """A raw answer as a checked reply; what does not fit is a `ReplyError`."""
    decided = parse_decision(answer, spec)
    if decided is not None:
        return RunnerResult(reply=decided)
    result = answer if isinstance(answer, RunnerResult) else RunnerResult(reply=_reply(answer, event))
    reply = result.reply
    if reply is None or reply is NOTHING:
        return result
    check_types(reply)
    check_fits(reply, spec.name, spec.decisions, spec.fields)
    if reply.input is None:
        return result
    frozen = msgspec.structs.replace(reply, input=freeze(reply.input))  # what is judged from here on is what runs
    return msgspec.structs.replace(result, reply=frozen)


def _reply(answer: Any, event: Event) -> Reply | None:
    if answer is None or isinstance(answer, Reply):
        return answer
    if isinstance(answer, Mapping):
        return decode_mapping(answer, event.event_name)
    raise ReplyError(_not_an_answer(answer))


_SAY = 'return None to say nothing, or a reply such as `deny("…")`'


def _not_an_answer(answer: Any) -> str:
    """What is wrong with an answer that cannot be read, and what to write."""
    if inspect.iscoroutine(answer):
        answer.close()
        return "answered with a coroutine it never awaited; write `return await …`"
    if callable(answer):
        return f'answered with `{getattr(answer, "__name__", answer)}` itself; call it: `return deny("…")`'
    if isinstance(answer, str):
        return 'answered with a text; return `deny("…")` to block, or `context("…")` to tell the model'
    return f"answered with `{type(answer).__name__}`; {_SAY}"


def failure_outcome(hook: Hook, event: Event, spec: EventSpec, error: BaseException, ms: float) -> Outcome:
    """A run that went wrong, with its consequence: the one place that knows fail-open from fail-closed (law 3)."""
    problem = _problem(error)
    closed = hook.fails_closed(event) and "deny" in spec.decisions
    reply = deny(_closed_reason(hook, event, error, problem)) if closed else NOTHING
    if isinstance(error, HookExited) and error.exit_code == 2:
        reply = no(spec.name, error.message or f"hook `{hook.name}` {problem}") or reply
    return Outcome(
        hook=hook.name, source=hook.source, event=event.event_name, status=_status(error), reply=reply, ms=ms,
        exit_code=getattr(error, "exit_code", None), error=problem, stdout=getattr(error, "stdout", ""),
        stderr=getattr(error, "stderr", ""),
    )  # fmt: skip


def as_failure(error: BaseException) -> Exception:
    """What a hook raised, as the failure it is: no exit and no cancellation of its own leaves `fire`."""
    if isinstance(error, CancelledError):
        return HookCancelled("cancelled itself before it replied")
    if isinstance(error, SystemExit):
        return HookExited(error.code, getattr(error, "__notes__", ()))
    return error if isinstance(error, Exception) else HookFailed(raised(error, str(error)))


def _status(error: BaseException) -> Status:
    if isinstance(error, HookTimeout):
        return Status.TIMEOUT
    return Status.CANCELLED if isinstance(error, HookCancelled) else Status.FAILED


def _problem(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot even be shown is a failure like any other
        said = "(its text cannot be shown)"
    return said if isinstance(error, (HookFailed, ReplyError)) else raised(error, said)


def raised(error: BaseException, said: str) -> str:
    """An exception in one phrase; many say nothing but their name."""
    return f"raised {type(error).__name__}{f': {said}' if said else ''}"


def _closed_reason(hook: Hook, event: Event, error: BaseException, problem: str) -> str:
    said = str(getattr(error, "stderr", "")).strip()
    what = f"`{event.subject}`" if event.subject else event.event_name
    return f"hook `{hook.name}` {problem}; it fails closed, so {what} was denied" + (f"\n{said}" if said else "")
