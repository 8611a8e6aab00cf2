"""Telling observers of single hooks: that one started, what it prints, what came of it."""

from __future__ import annotations

from uuid import uuid4

from hookline.engine.context import Context
from hookline.engine.observers import HookProgress, HookResponse, HookStarted, Observers
from hookline.engine.outcome import Outcome, Status


def announce_start(ctx: Context, observers: Observers) -> None:
    """Tell that a hook begins to run, and from now on what it prints."""
    options = ctx.with_options()
    options.hook_id = uuid4().hex
    names = _names(ctx)
    observers.notify(HookStarted(**names, status_message=ctx.hook.status_message, limit=ctx.timeout))
    printed = {"stdout": "", "stderr": ""}

    def progress(stream: str, text: str) -> None:
        printed[stream] += text
        observers.notify(HookProgress(**names, **printed, output=printed["stdout"] + printed["stderr"]))

    options.on_progress = progress


def _names(ctx: Context) -> dict[str, str]:
    event = ctx.event
    name = f"{event.event_name}:{event.subject}" if event.subject else event.event_name
    return {
        "hook_id": ctx.with_options().hook_id, "hook_name": name, "hook_event": event.event_name,
        "session_id": event.session_id, "hook": ctx.hook.name,
    }  # fmt: skip


def response_of(ctx: Context, outcome: Outcome) -> HookResponse:
    """What is told of a hook that is done."""
    cancelled = outcome.status in (Status.TIMEOUT, Status.CANCELLED)
    word = "cancelled" if cancelled else "success" if outcome.ok else "error"
    return HookResponse(
        **_names(ctx),
        output=outcome.stdout + outcome.stderr,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        exit_code=outcome.exit_code,
        outcome=word,  # type: ignore[arg-type]  # one of the three words above
        result=outcome,
    )
