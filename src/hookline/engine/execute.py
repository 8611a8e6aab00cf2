"""SELECTED → OUTCOMES: run hooks one after another, or all at once."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from hookline.engine.context import Context
from hookline.engine.merge import second_judgement
from hookline.engine.observers import HookProgress, HookResponse, HookStarted
from hookline.engine.outcome import Outcome, Ran, Status
from hookline.engine.step import Limits, Raised, Suspended, finish, first_step
from hookline.engine.verdict import Verdict
from hookline.errors import HookCancelled, HookFailed, HookTimeout, ReplyError
from hookline.events import Event, EventSpec, spec_of
from hookline.hooks.actions import Function
from hookline.hooks.hook import Hook
from hookline.replies import NOTHING, Decision, Reply, check_fits, deny
from hookline.wire import claude

if TYPE_CHECKING:
    from hookline.engine.engine import Engine

log = logging.getLogger("hookline.engine")
_NOT_BEGUN: Any = object()


class Run(msgspec.Struct):
    """One event on its way through the hooks chosen for it."""

    engine: Engine
    event: Event
    chosen: Sequence[Hook]
    deadline: float | None = None


class Pause(msgspec.Struct):
    """Where the fast lane ended: the first hook that had something to say or had to wait, and how far it got."""

    position: int
    marks: list[float]
    step: Any
    ctx: Context | None = None


def silently(event: Event, chosen: Sequence[Hook], engine: Engine) -> Verdict | Pause:
    """The fast lane: take async functions in order for as long as they answer `None` at once."""
    clock = engine.clock
    marks = [clock()]
    for position, hook in enumerate(chosen):
        if not hook.plain:
            return Pause(position, marks, _NOT_BEGUN)
        ctx = Context(event, hook, engine)
        step = first_step(_called(hook, event, ctx))
        if step is not None:
            return Pause(position, marks, step, ctx)
        marks.append(clock())
    return Verdict(event, NOTHING, tuple(chosen), marks)


def _called(hook: Hook, event: Event, ctx: Context) -> Any:
    action: Function = hook.action  # type: ignore[assignment]  # plain hooks are functions
    return action.call(event, ctx) if action.takes_context else action.call(event)


async def sequential(run: Run, pause: Pause | None = None) -> list[Outcome]:
    """One after another, each seeing the input as rewritten so far; a deny or a stop ends the run (DESIGN, Order)."""
    outcomes: list[Outcome] = []
    start = 0
    if pause is not None:
        start = pause.position
        outcomes += Verdict(run.event, NOTHING, tuple(run.chosen), pause.marks).outcomes
    event, rewriter = run.event, -1
    for position in range(start, len(run.chosen)):
        outcome = await run_hook(run, run.chosen[position], event, pause)
        pause = None
        outcomes.append(outcome)
        if outcome.reply.input is not None:
            event, rewriter = rewritten(event, outcome.reply.input), position
        if outcome.reply.decision is Decision.DENY or outcome.reply.stop:
            outcomes += [_skipped(hook, event, outcome) for hook in run.chosen[position + 1 :]]
            return outcomes
    return await _rejudged(run, event, outcomes, stale=range(rewriter))


async def parallel(run: Run) -> list[Outcome]:
    """All at once on the input as it came; merged in configured order, whoever finishes first."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run_hook(run, hook, run.event)) for hook in run.chosen]
    outcomes = [task.result() for task in tasks]
    rewriters = [position for position, outcome in enumerate(outcomes) if outcome.reply.input is not None]
    if not rewriters:
        return outcomes
    event = rewritten(run.event, outcomes[rewriters[-1]].reply.input or {})
    return await _rejudged(run, event, outcomes, [p for p in range(len(outcomes)) if p != rewriters[-1]])


def rewritten(event: Event, tool_input: dict[str, Any]) -> Event:
    """The event with another tool input."""
    return msgspec.structs.replace(event, tool_input=tool_input)  # type: ignore[call-arg]


async def _rejudged(run: Run, event: Event, outcomes: list[Outcome], stale: Sequence[int]) -> list[Outcome]:
    """Law 4: hooks that judged an older input judge the one that will run, once more."""
    for position in stale:
        hook, first = run.chosen[position], outcomes[position]
        if (
            not hook.rejudge
            or first.status in (Status.BACKGROUND, Status.SKIPPED)
            or not run.engine.concerns(hook, event)
        ):
            continue
        second = await run_hook(run, hook, event)
        changes = second.reply.input is not None and second.reply.input != getattr(event, "tool_input", None)
        outcomes[position] = msgspec.structs.replace(
            second,
            reply=second_judgement(first.reply, second.reply),
            ms=first.ms + second.ms,
            note="judged twice; its second rewrite was not applied" if changes else "judged the rewritten input too",
        )
    return outcomes


def _skipped(hook: Hook, event: Event, by: Outcome) -> Outcome:
    word = "denied" if by.reply.decision is Decision.DENY else "stopped"
    return Outcome(
        hook=hook.name, source=hook.source, event=event.event_name, status=Status.SKIPPED, note=f"`{by.hook}` {word}"
    )


async def run_hook(run: Run, hook: Hook, event: Event, pause: Pause | None = None) -> Outcome:
    """One hook, once: its answer or its failure, as an outcome. Cancellation from outside goes through.

    A hook that began in the fast lane goes on with the context it was handed there: it must hear of its cancellation.
    """
    engine = run.engine
    step, ctx = (_NOT_BEGUN, None) if pause is None else (pause.step, pause.ctx)
    if ctx is None:
        ctx = Context(event, hook, engine, engine.clock(), run.deadline, uuid4().hex if engine.observers else "")
    elif ctx.started is None:
        ctx.started = pause.marks[-1] if pause else None
    if engine.observers:
        _announce(ctx)
    if hook.background and step is _NOT_BEGUN:
        outcome = engine.go_on_later(hook, event, ctx, None)
    else:
        outcome = await _attempted(engine, hook, event, ctx, step)
    if engine.observers:
        engine.observers.tell(_response(ctx, outcome))
    return outcome


async def _attempted(engine: Engine, hook: Hook, event: Event, ctx: Context, step: Any) -> Outcome:
    spec = spec_of(event)
    try:
        answer = await answered(engine, hook, event, ctx, step)
        ran = understood(answer, event, spec)
    except (HookFailed, ReplyError) as error:
        return failure(hook, event, spec, error, _ms(engine, ctx))
    except Exception as error:  # noqa: BLE001 - a crash is an outcome like any other
        log.error("hook `%s` crashed on %s\n%s", hook.name, event.event_name, traceback.format_exc())
        return failure(hook, event, spec, error, _ms(engine, ctx))
    reply = ran.reply or NOTHING
    if reply.background:
        return engine.go_on_later(hook, event, ctx, reply)
    return Outcome(
        hook=hook.name, source=hook.source, event=event.event_name, reply=reply, ms=_ms(engine, ctx),
        exit_code=ran.exit_code, stdout=ran.stdout, stderr=ran.stderr,
    )  # fmt: skip


async def answered(engine: Engine, hook: Hook, event: Event, ctx: Context, step: Any = _NOT_BEGUN) -> Any:
    """The hook's raw answer within its time, or what it raised."""
    if step is _NOT_BEGUN:
        begun = _called(hook, event, ctx) if hook.plain else engine.runner_of(hook).run(hook, event, ctx)
        step = first_step(begun)
    if isinstance(step, Raised):
        if isinstance(step.error, asyncio.CancelledError):
            raise HookCancelled("cancelled itself before it replied")
        raise step.error
    if isinstance(step, Suspended):
        due = ctx.deadline
        seconds = max(due - engine.clock(), 0.0)
        step = await finish(step, Limits(seconds, engine.grace, ctx.cancel, due - (ctx.started or due)))
    return step


def understood(answer: Any, event: Event, spec: EventSpec) -> Ran:
    """A raw answer as a checked reply; what does not fit is a `ReplyError`."""
    ran = answer if isinstance(answer, Ran) else Ran(reply=_reply(answer, event))
    if ran.reply is not None:
        check_fits(ran.reply, spec.name, spec.decisions, spec.fields)
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
    problem = str(error) if isinstance(error, (HookFailed, ReplyError)) else f"raised {type(error).__name__}: {error}"
    reply = deny(_closed_reason(hook, event, error, problem)) if closed and "deny" in spec.decisions else NOTHING
    return Outcome(
        hook=hook.name,
        source=hook.source,
        event=event.event_name,
        status=_STATUS.get(type(error), Status.FAILED),
        reply=reply,
        ms=ms,
        exit_code=getattr(error, "exit_code", None),
        error=problem,
        stdout=getattr(error, "stdout", ""),
        stderr=getattr(error, "stderr", ""),
    )


_STATUS = {HookTimeout: Status.TIMEOUT, HookCancelled: Status.CANCELLED}


def _closed_reason(hook: Hook, event: Event, error: BaseException, problem: str) -> str:
    said = getattr(error, "stderr", "").strip()
    what = f"`{event.subject}`" if event.subject else event.event_name
    return f"hook `{hook.name}` {problem}; it fails closed, so {what} was denied" + (f"\n{said}" if said else "")


def _ms(engine: Engine, ctx: Context) -> float:
    return (engine.clock() - (ctx.started or 0.0)) * 1000


def _announce(ctx: Context) -> None:
    names = _names(ctx)
    observers = ctx.engine.observers
    observers.tell(HookStarted(**names, status_message=ctx.hook.status_message))
    printed = {"stdout": "", "stderr": ""}

    def progress(stream: str, text: str) -> None:
        printed[stream] += text
        observers.tell(HookProgress(**names, **printed, output=printed["stdout"] + printed["stderr"]))

    ctx.on_progress = progress


def _names(ctx: Context) -> dict[str, str]:
    event = ctx.event
    name = f"{event.event_name}:{event.subject}" if event.subject else event.event_name
    return {
        "hook_id": ctx.hook_id, "hook_name": name, "hook_event": event.event_name,
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
        outcome=word,  # type: ignore[arg-type]
        result=outcome,
    )
