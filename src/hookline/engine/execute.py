"""SELECTED → OUTCOMES: run hooks one after another, or all at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from hookline.engine.answers import as_failure, failure, understood
from hookline.engine.context import Circumstances, Context, Seat
from hookline.engine.merge import asked_late, judged_again
from hookline.engine.observers import HookProgress, HookResponse, HookStarted
from hookline.engine.outcome import Outcome, Status
from hookline.engine.select import Index, select
from hookline.engine.step import Limits, Raised, Suspended, blocked_loop, finish, first_step
from hookline.engine.verdict import ended_by
from hookline.errors import HooklineError, HookTimeout
from hookline.events import Event, spec_of
from hookline.hooks.actions import Command
from hookline.hooks.hook import Hook
from hookline.replies import NOTHING, Decision

if TYPE_CHECKING:
    from hookline.engine.engine import Engine

log = logging.getLogger("hookline.engine")


class Run(msgspec.Struct):
    """One event on its way through the hooks chosen for it, `among` those that were there when it was fired."""

    engine: Engine
    event: Event
    chosen: Sequence[Hook]
    among: Index
    deadline: float | None = None


class Begun(msgspec.Struct):
    """A hook whose first step was taken already, on the quick way: what it answered, raised or waits for."""

    ctx: Context
    step: Any


# -- one after another, or all at once -----------------------------------------------------------------------------


async def sequential(run: Run, done: Iterable[Outcome] = (), begun: Begun | None = None) -> list[Outcome]:
    """One after another, each seeing the input as rewritten so far; a deny or a stop ends the run (DESIGN, Order).

    `done` are outcomes of the first hooks, and `begun` the start of the next one, if the quick way came that far.
    """
    outcomes = list(done)
    event, rewriter = run.event, -1
    for position in range(len(outcomes), len(run.chosen)):
        hook = run.chosen[position]
        if event is not run.event and not run.engine.concerns(hook, event):
            outcomes.append(_skipped(hook, event, "does not apply to the rewritten input"))
            continue
        outcome = await _asked(run, hook, event, begun)
        begun = None
        outcomes.append(outcome)
        if outcome.reply.input is not None:
            event, rewriter = rewritten(event, outcome.reply.input), position
        if outcome.reply.decision is Decision.DENY or outcome.reply.stop:
            why = ended_by(outcome.hook, outcome.reply)
            return [*outcomes, *(_skipped(hook, event, why) for hook in run.chosen[position + 1 :])]
    return outcomes if rewriter < 0 else await _settled(run, event, outcomes, stale=range(rewriter))


async def parallel(run: Run) -> list[Outcome]:
    """All at once on the input as it came; merged in configured order, whoever finishes first."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_asked(run, hook, run.event)) for hook in run.chosen]
    outcomes = [task.result() for task in tasks]
    rewriters = [position for position, outcome in enumerate(outcomes) if outcome.reply.input is not None]
    if not rewriters:
        return outcomes
    event = rewritten(run.event, outcomes[rewriters[-1]].reply.input or {})
    return await _settled(run, event, outcomes, [p for p in range(len(outcomes)) if p != rewriters[-1]])


def rewritten(event: Event, tool_input: dict[str, Any]) -> Event:
    """The event with another tool input."""
    return msgspec.structs.replace(event, tool_input=tool_input)


async def _settled(run: Run, event: Event, outcomes: list[Outcome], stale: Iterable[int]) -> list[Outcome]:
    """Law 4: whoever judged an older input, or was not asked because of it, judges the one that will run."""
    for position in stale:
        hook, first = run.chosen[position], outcomes[position]
        if first.status in (Status.BACKGROUND, Status.SKIPPED):
            continue
        again = hook.rejudge and run.engine.concerns(hook, event)
        outcomes[position] = judged_again(first, await run_hook(run, hook, event) if again else None, event)
    return await _with_newcomers(run, event, outcomes)


async def _with_newcomers(run: Run, event: Event, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes, and in their places those of hooks whose conditions hold only for the rewritten input."""
    known = {hook.name for hook in run.chosen}
    newcomers = [hook for hook in select(event, run.among) if hook.name not in known]
    if not newcomers:
        return outcomes
    late = [asked_late(await _asked(run, hook, event)) for hook in newcomers]
    places = {hook.name: place for place, hook in enumerate(run.among.hooks)}
    return sorted([*outcomes, *late], key=lambda outcome: places[outcome.hook])


def _skipped(hook: Hook, event: Event, why: str) -> Outcome:
    return Outcome(hook=hook.name, source=hook.source, event=event.event_name, status=Status.SKIPPED, note=why)


# -- one hook, once ------------------------------------------------------------------------------------------------


async def _asked(run: Run, hook: Hook, event: Event, begun: Begun | None = None) -> Outcome:
    """A hook's turn has come."""
    if begun is not None:
        return await attempted(run.engine, hook, event, begun.ctx, begun)
    if not hook.once:
        return await run_hook(run, hook, event)
    if not run.engine.claim(hook):
        return _skipped(hook, event, "it has run before")
    outcome = await run_hook(run, hook, event)
    if not _done_with(hook, outcome):
        run.engine.give_back(hook)
    return outcome


def _done_with(hook: Hook, outcome: Outcome) -> bool:
    """Whether a run counts for a hook declared `once`: one that failed, or a command that exits with a no, does not."""
    return outcome.ok and not (isinstance(hook.action, Command) and outcome.exit_code)


async def run_hook(run: Run, hook: Hook, event: Event) -> Outcome:
    """One hook, once: its answer or its failure, as an outcome. Cancellation from outside goes through."""
    engine = run.engine
    more = None if run.deadline is None else Circumstances(run.deadline)
    ctx = Context(event, Seat(hook, engine), engine.clock(), more)
    if not engine.observers.detailed:
        return await _performed(engine, hook, event, ctx)
    _announce(ctx)
    outcome = await _performed(engine, hook, event, ctx)
    engine.observers.tell(_response(ctx, outcome))
    return outcome


async def _performed(engine: Engine, hook: Hook, event: Event, ctx: Context) -> Outcome:
    if hook.background:
        return engine.go_on_later(hook, event, ctx, None)
    return await attempted(engine, hook, event, ctx)


async def attempted(engine: Engine, hook: Hook, event: Event, ctx: Context, begun: Begun | None = None) -> Outcome:
    """What became of one run: the hook's checked answer, or its failure with the consequence."""
    spec = spec_of(event)
    try:
        answer = await answered(engine, hook, event, ctx, begun)
        ran = understood(answer, event, spec)
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        outcome = failure(hook, event, spec, error, _ms(engine, ctx))
        _log_failure(outcome, error)
        return outcome
    reply = ran.reply or NOTHING
    if reply.background:
        return engine.go_on_later(hook, event, ctx, reply)
    return Outcome(
        hook=hook.name, source=hook.source, event=event.event_name, reply=reply, ms=_ms(engine, ctx),
        exit_code=ran.exit_code, stdout=ran.stdout, stderr=ran.stderr,
    )  # fmt: skip


async def answered(engine: Engine, hook: Hook, event: Event, ctx: Context, begun: Begun | None = None) -> Any:
    """The hook's raw answer within its time, or what it raised."""
    step = begun.step if begun is not None else _begin(engine, hook, event, ctx)
    if isinstance(step, Suspended):
        step = await finish(step, limits(engine, ctx))
    elif begun is None and engine.clock() > ctx.deadline and not isinstance(step, Raised):
        raise blocked_loop(engine.clock() - (ctx.started or 0.0), ctx.timeout)
    return unwrapped(step)


def unwrapped(step: Any) -> Any:
    """An answer, or what was raised in its place."""
    if not isinstance(step, Raised):
        return step
    error = as_failure(step.error)
    raise error from (None if error is step.error else step.error)


def limits(engine: Engine, ctx: Context) -> Limits:
    """How long a hook that has to wait may still take."""
    due = ctx.deadline
    return Limits(max(due - engine.clock(), 0.0), engine.grace, ctx.cancel, due - (ctx.started or due))


def _begin(engine: Engine, hook: Hook, event: Event, ctx: Context) -> Any:
    last = ctx.fire_deadline
    if last is not None and last <= engine.clock():
        raise HookTimeout("was not asked: the deadline had passed")
    return first_step(called(hook, event, ctx) if hook.plain else engine.runner_of(hook).run(hook, event, ctx))


def called(hook: Hook, event: Event, ctx: Context) -> Any:
    """The coroutine of a plain hook."""
    action: Any = hook.action
    return action.call(event, ctx) if action.takes_context else action.call(event)


def _log_failure(outcome: Outcome, error: Exception) -> None:
    """A crash in full; a failure that somebody expected in one line, unless the verdict tells of it anyway."""
    where = f"hook `{outcome.hook}` on {outcome.event}"
    if not isinstance(error, HooklineError):
        log.error("%s crashed", where, exc_info=error)
    elif outcome.reply is NOTHING:
        level = logging.INFO if outcome.exit_code is not None else logging.WARNING
        log.log(level, "%s %s", where, str(outcome.error).partition("\n")[0])


def _ms(engine: Engine, ctx: Context) -> float:
    return (engine.clock() - (ctx.started or 0.0)) * 1000


# -- telling observers ---------------------------------------------------------------------------------------------


def _announce(ctx: Context) -> None:
    ctx.circumstances.hook_id = uuid4().hex
    names = _names(ctx)
    observers = ctx.engine.observers
    observers.tell(HookStarted(**names, status_message=ctx.hook.status_message))
    printed = {"stdout": "", "stderr": ""}

    def progress(stream: str, text: str) -> None:
        printed[stream] += text
        observers.tell(HookProgress(**names, **printed, output=printed["stdout"] + printed["stderr"]))

    ctx.circumstances.on_progress = progress


def _names(ctx: Context) -> dict[str, str]:
    event = ctx.event
    name = f"{event.event_name}:{event.subject}" if event.subject else event.event_name
    return {
        "hook_id": ctx.circumstances.hook_id, "hook_name": name, "hook_event": event.event_name,
        "session_id": event.session_id, "hook": ctx.hook.name,
    }  # fmt: skip


def _response(ctx: Context, outcome: Outcome) -> HookResponse:
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
