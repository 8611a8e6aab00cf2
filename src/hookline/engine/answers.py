"""From what a hook brought back to what counts: a checked reply, or a failure with its consequence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.engine.outcome import Outcome, Ran, Status
from hookline.errors import HookCancelled, HookFailed, HookTimeout, ReplyError
from hookline.events import Event, EventSpec
from hookline.hooks.hook import Hook
from hookline.replies import NOTHING, Reply, check_fits, check_types, deny
from hookline.wire import claude


def understood(answer: Any, event: Event, spec: EventSpec) -> Ran:
    """A raw answer as a checked reply; what does not fit is a `ReplyError`."""
    ran = answer if isinstance(answer, Ran) else Ran(reply=_reply(answer, event))
    reply = ran.reply
    if reply is not None and reply is not NOTHING:
        check_types(reply)
        check_fits(reply, spec.name, spec.decisions, spec.fields)
    return ran


def _reply(answer: Any, event: Event) -> Reply | None:
    if answer is None or isinstance(answer, Reply):
        return answer
    if isinstance(answer, Mapping):
        return claude.decode_reply(answer, event)
    kind = type(answer).__name__
    close = getattr(answer, "close", None)
    if kind == "coroutine" and close is not None:
        close()
        raise ReplyError("answered with a coroutine it never awaited; write `return await …`")
    raise ReplyError(f"answered with `{kind}`; return None, a Reply or a mapping in the wire format")


def failure(hook: Hook, event: Event, spec: EventSpec, error: BaseException, ms: float) -> Outcome:
    """A run that went wrong, with its consequence: the one place that knows fail-open from fail-closed (law 3)."""
    closed = hook.on_failure == "block" or (hook.on_failure is None and spec.gate)
    problem = _problem(error)
    reply = deny(_closed_reason(hook, event, error, problem)) if closed and "deny" in spec.decisions else NOTHING
    return Outcome(
        hook=hook.name,
        source=hook.source,
        event=event.event_name,
        status=_status(error),
        reply=reply,
        ms=ms,
        exit_code=getattr(error, "exit_code", None),
        error=problem,
        stdout=getattr(error, "stdout", ""),
        stderr=getattr(error, "stderr", ""),
    )


def _status(error: BaseException) -> Status:
    if isinstance(error, HookTimeout):
        return Status.TIMEOUT
    return Status.CANCELLED if isinstance(error, HookCancelled) else Status.FAILED


def _problem(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot even be shown is a failure like any other
        said = "(its text cannot be shown)"
    return said if isinstance(error, (HookFailed, ReplyError)) else f"raised {type(error).__name__}: {said}"


def _closed_reason(hook: Hook, event: Event, error: BaseException, problem: str) -> str:
    said = str(getattr(error, "stderr", "")).strip()
    what = f"`{event.subject}`" if event.subject else event.event_name
    return f"hook `{hook.name}` {problem}; it fails closed, so {what} was denied" + (f"\n{said}" if said else "")
