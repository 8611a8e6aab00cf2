"""SELECTED → OUTCOMES → VERDICT: one event through the hooks chosen for it, one after another or all at once."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from hookline.core.engine import composition
from hookline.core.engine.context import Binding, Context, HookScope, RunnerPool, bind
from hookline.core.engine.coroutine_driver import RaisedError, Suspended, blocked_loop, drive, start
from hookline.core.engine.observers import Observers, announce_start, response_of
from hookline.core.engine.select import HookIndex, Registry, applies_to, select
from hookline.core.engine.verdict import Outcome, RunnerResult, Status, Verdict, ended_by, outcome_of
from hookline.core.hooks.hook import Command, Hook
from hookline.errors import HookCancelled, HooklineError, HookTimeout
from hookline.events import Event, EventSpec
from hookline.replies import NOTHING, Decision, Reply

log: logging.Logger = logging.getLogger("hookline.engine")


class Background:
    """The runs of one set of hooks in the background."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._late: deque[Outcome] = deque()

    def start(self, run: Coroutine[Any, Any, Outcome], tell: Callable[[Outcome], Any] | None = None) -> None:
        """Let `run` go on by itself; its outcome is kept until it is collected, and `tell` is told at once."""
        task = asyncio.get_running_loop().create_task(run)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finished(done, tell))

    def _finished(self, task: asyncio.Task[Outcome], tell: Callable[[Outcome], Any] | None) -> None:
        self._tasks.discard(task)
        if task.cancelled():  # before it began, by closing the loop
            return
        error = task.exception()
        if error is not None:
            log.error("a background hook could not be run", exc_info=error)
            return
        self._late.append(task.result())
        if tell is not None:
            tell(task.result())

    def collect(self) -> list[Outcome]:
        """The late outcomes so far; each is handed out once."""
        return [self._late.popleft() for _ in range(len(self._late))]

    async def drain(self, timeout: float | None = None) -> list[Outcome]:  # noqa: ASYNC109 - it bounds the waiting only
        """Wait for what still runs on this loop, up to `timeout`, and collect."""
        here = self._tasks_here()
        if here:
            await asyncio.wait(here, timeout=timeout)
            await asyncio.sleep(0)  # done-callbacks file the outcomes
        return self.collect()

    async def aclose(self) -> list[Outcome]:
        """Cancel what is left, see it end, and collect."""
        left = len(self._tasks)
        if left:
            log.warning("%d background hook(s) were cancelled because their set was closed", left)
        here = self._tasks_here()
        for task in self._tasks - here:
            with suppress(RuntimeError):  # its loop is closed already
                task.get_loop().call_soon_threadsafe(task.cancel)
        for task in here:
            task.cancel()
        return await self.drain()

    def _tasks_here(self) -> set[asyncio.Task[Outcome]]:
        loop = asyncio.get_running_loop()
        return {task for task in tuple(self._tasks) if task.get_loop() is loop}


async def _as_coroutine(work: Awaitable[Any] | None) -> Any:
    return await work if inspect.isawaitable(work) else None


StartedRun = tuple[Context, Any]
"""A hook whose first step was taken already, on the fast path, and what it answered, raised or waits for."""


class EventRun(msgspec.Struct):
    """One event on its way through the hooks chosen for it, `among` those that were there when it was fired."""

    event: Event
    spec: EventSpec
    chosen: Sequence[Hook]
    among: HookIndex
    deadline: float | None = None
    started: StartedRun | None = None


class Dispatcher:
    """Asks hooks: what each of them comes to is an outcome, and the outcomes are merged."""

    def __init__(self, scope: HookScope, registry: Registry, runners: RunnerPool, observers: Observers) -> None:
        self.scope = scope
        self.observers = observers
        self.background: Background = Background()
        self._registry = registry
        self._runners = runners

    async def dispatch(self, run: EventRun, order: composition.Order, done: Iterable[Outcome] = ()) -> Verdict:
        """One verdict of all hooks. `done` and `run.started` are how far the fast path came, if it began."""
        if order not in ("parallel", composition.UNANIMOUS) or len(run.chosen) < 2:
            outcomes = await self._sequential(run, list(done), run_all=order == composition.RUN_ALL)
            return composition.merge(run.event, outcomes)
        async with asyncio.TaskGroup() as group:  # on the input as it came
            tasks = [group.create_task(self._ask(run, hook, run.event)) for hook in run.chosen]
        asked = [task.result() for task in tasks]  # in configured order, whichever finished first
        outcomes = list(asked)
        rewriters = [position for position, outcome in enumerate(outcomes) if outcome.reply.input is not None]
        if rewriters:  # the last rewrite is what will run, and the others judge it, too
            event = msgspec.structs.replace(run.event, tool_input=outcomes[rewriters[-1]].reply.input)
            stale = [position for position in range(len(outcomes)) if position != rewriters[-1]]
            outcomes = await self._judge_again(run, event, outcomes, stale)
        verdict = composition.merge(run.event, outcomes)
        if order == composition.UNANIMOUS:
            verdict.reply = verdict.reply | composition.disagreement(asked)
        return verdict

    async def _sequential(self, run: EventRun, outcomes: list[Outcome], *, run_all: bool) -> list[Outcome]:
        """One after another, on the input as rewritten so far; a deny or a stop ends it, unless all are to run."""
        event, rewriter = run.event, -1
        for position in range(len(outcomes), len(run.chosen)):
            hook = run.chosen[position]
            if event is not run.event and not applies_to(hook, event, run.among):
                outcomes.append(_skipped(hook, event, "does not apply to the rewritten input"))
                continue
            outcome = await self._ask(run, hook, event)
            outcomes.append(outcome)
            if outcome.reply.input is not None:
                event, rewriter = msgspec.structs.replace(event, tool_input=outcome.reply.input), position
            if not run_all and (outcome.reply.decision is Decision.DENY or outcome.reply.stop):
                why = ended_by(outcome.hook, outcome.reply)
                return [*outcomes, *(_skipped(hook, event, why) for hook in run.chosen[position + 1 :])]
        return outcomes if rewriter < 0 else await self._judge_again(run, event, outcomes, stale=range(rewriter))

    async def _judge_again(
        self, run: EventRun, event: Event, outcomes: list[Outcome], stale: Iterable[int]
    ) -> list[Outcome]:
        """Law 4: a hook that judged an older input, or was not asked because of it, judges the one that will run."""
        for position in stale:
            hook, first = run.chosen[position], outcomes[position]
            if first.status in (Status.BACKGROUND, Status.SKIPPED):
                continue
            again = hook.rejudge and applies_to(hook, event, run.among)
            second = await self._invoke(run, hook, event) if again else None
            outcomes[position] = composition.judged_again(first, second, event)
        known = {hook.name for hook in run.chosen}
        newcomers = [hook for hook in select(event, run.among) if hook.name not in known]
        if not newcomers:
            return outcomes
        late = [composition.asked_late(await self._ask(run, hook, event)) for hook in newcomers]
        places = {hook.name: place for place, hook in enumerate(run.among.hooks)}
        return sorted([*outcomes, *late], key=lambda outcome: places[outcome.hook])

    async def _ask(self, run: EventRun, hook: Hook, event: Event) -> Outcome:
        """A hook's turn has come; one declared `once` may have had it before."""
        if not hook.once:
            return await self._invoke(run, hook, event)
        if not self._registry.acquire_once(hook):
            return _skipped(hook, event, "it has run before")
        outcome = await self._invoke(run, hook, event)
        refused = isinstance(hook.action, Command) and outcome.exit_code
        if not outcome.ok or refused:
            self._registry.release_once(hook)
        return outcome

    async def _invoke(self, run: EventRun, hook: Hook, event: Event) -> Outcome:
        """One hook, once: its answer or its failure, as an outcome. Cancellation from outside goes through."""
        started, run.started = run.started, None
        if started is not None:
            return await self._outcome(started[0], run.spec, started)
        ctx = Context(event, bind(hook, self.scope), self.scope.clock(), run.deadline)
        if self.observers.detailed:
            announce_start(ctx, self.observers)
        outcome = await self._outcome(ctx, run.spec)
        outcome = outcome if hook.mode == "enforce" else composition.unenforced_outcome(outcome)
        if self.observers.detailed:
            self.observers.notify(response_of(ctx, outcome))
        return outcome

    async def _outcome(self, ctx: Context, spec: EventSpec, started: StartedRun | None = None) -> Outcome:
        hook, event = ctx.binding.hook, ctx.event
        if hook.background:
            return self._detach(ctx, spec, None)
        try:
            result = composition.parse_answer(await self._answer(ctx, started), spec)
        except Exception as error:  # noqa: BLE001 - a failure is an outcome
            outcome = composition.failure_outcome(hook, event, spec, error, self._ms(ctx))
            _log_failure(outcome, error)
            return outcome
        if result.reply is not None and result.reply.background:
            return self._detach(ctx, spec, result.reply)
        return _replied(ctx, result, self._ms(ctx))

    async def _answer(self, ctx: Context, started: StartedRun | None = None) -> Any:
        """The hook's raw answer within its time, or what it raised."""
        if started is None:
            last, binding, hook = ctx.fire_deadline, ctx.binding, ctx.binding.hook
            if last is not None and last <= self.scope.clock():
                raise HookTimeout("was not asked: the deadline had passed")
            if binding.call is None:
                step = start(self._runners.of(hook).run(hook, ctx.event, ctx))
            else:
                step = start(binding.call(ctx.event, ctx) if binding.wants_context else binding.call(ctx.event))
        else:
            step = started[1]
        if isinstance(step, Suspended):
            step = await drive(step, ctx)
        elif not isinstance(step, RaisedError) and self.scope.clock() > ctx.deadline:
            raise blocked_loop(self.scope.clock() - (ctx.started or 0.0), ctx.timeout)
        return _unwrapped(step)

    def _ms(self, ctx: Context) -> float:
        return (self.scope.clock() - (ctx.started or 0.0)) * 1000

    def _detach(self, ctx: Context, spec: EventSpec, reply: Reply | None) -> Outcome:
        """Let a hook go on by itself: its late outcome is collected later, and what else `reply` says counts now."""
        self.background.start(self._late_outcome(ctx, spec, reply), self.scope.on_late)
        now = msgspec.structs.replace(reply or NOTHING, background=False, background_timeout=None, later=None)
        said = NOTHING if now == NOTHING else now
        return outcome_of(ctx.hook, ctx.event, status=Status.BACKGROUND, reply=said, ms=self._ms(ctx))

    async def _late_outcome(self, ctx: Context, spec: EventSpec, reply: Reply | None) -> Outcome:
        late = msgspec.structs.replace(ctx, started=self.scope.clock(), fire_deadline=None)
        if reply is not None:  # what `background(work)` left to do
            seconds, work = reply.background_timeout or ctx.timeout, _as_coroutine(reply.later)
            late.binding = Binding(ctx.hook, self.scope, seconds, lambda event: work)
        try:
            result = composition.parse_answer(await self._answer(late), spec)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a late failure is an outcome too
            cancelled = isinstance(error, asyncio.CancelledError)
            lenient = msgspec.structs.replace(ctx.hook, on_failure="continue")
            failed = HookCancelled("was cancelled in the background") if cancelled else error
            return composition.failure_outcome(lenient, ctx.event, spec, failed, self._ms(late))
        return _replied(late, result, self._ms(late))


def _unwrapped(step: Any) -> Any:
    if not isinstance(step, RaisedError):
        return step
    error = composition.as_failure(step.error)
    raise error from (None if error is step.error else step.error)


def _replied(ctx: Context, result: RunnerResult, ms: float) -> Outcome:
    return outcome_of(
        ctx.binding.hook, ctx.event, reply=result.reply or NOTHING, ms=ms,
        exit_code=result.exit_code, stdout=result.stdout, stderr=result.stderr,
    )  # fmt: skip


def _skipped(hook: Hook, event: Event, why: str) -> Outcome:
    return outcome_of(hook, event, status=Status.SKIPPED, note=why)


def _log_failure(outcome: Outcome, error: Exception) -> None:
    """A crash in full; an expected failure in one line, unless the verdict tells of it anyway."""
    where = f"hook `{outcome.hook}` on {outcome.event}"
    if not isinstance(error, HooklineError):
        log.error("%s crashed", where, exc_info=error)
    elif outcome.reply is NOTHING:
        level = logging.INFO if outcome.exit_code is not None else logging.WARNING
        log.log(level, "%s %s", where, str(outcome.error).partition("\n")[0])
