"""The quick way: what `fire` does when nobody watches, and all chosen hooks are async functions or there is only one.

Functions are called in order for as long as they answer `None`; no task or outcome is made for that, and a timer only
for those that wait. The first that says something or raises is handed, with its context, to the slow way, which goes on
from there. A function whose code has no `await` in it can never wait, so it is awaited like any other coroutine; of
the others the first step is taken by hand. A single hook of another kind goes straight to its runner.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from hookline.engine.context import Context, Seat
from hookline.engine.execute import Begun, Run, attempted, limits, sequential
from hookline.engine.merge import merge
from hookline.engine.select import Index, class_of
from hookline.engine.step import ANSWERED, Raised, Suspended, blocked_loop, finish, first_step, idle, new_stepper
from hookline.engine.verdict import Verdict, quick_outcomes
from hookline.events import Event, spec_of
from hookline.hooks.actions import Function
from hookline.hooks.hook import Hook
from hookline.hooks.signature import can_wait
from hookline.replies import NOTHING, Decision, Reply, only_decides
from hookline.wire.reading import only_decision

if TYPE_CHECKING:
    from hookline.engine.engine import Engine

Way = Callable[[Any], Coroutine[Any, Any, Verdict]]
"""Takes an event through the hooks chosen for it."""


_MOST_SUBJECTS = 512
_DENY = Decision.DENY  # looking a member up in its enum takes as long as the hook, on Python 3.11


class Ways:
    """The quick ways found so far, by kind of event; what has none takes the `slow` one. A changed set starts anew."""

    def __init__(self, slow: Way) -> None:
        self.of: dict[type[Event], Way] = {}
        self._slow = slow
        self._subjects: dict[type[Event], dict[str | None, Way]] = {}

    def remember(self, engine: Engine, event: Event, chosen: tuple[Hook, ...], among: Index) -> Way | None:
        """Find the quick way for events like this one, if they have one."""
        cls = event.__class__
        row = among.rows.get(class_of(event))
        if (row is not None and row.conditional) or (engine.order == "parallel" and len(chosen) > 1):
            return None
        way = quick_way(engine, cls, chosen, among)
        if way is None:
            return None
        if row is None or cls.subject_field is None or all(hook.matcher.matches_all for hook in row.hooks):
            self.of[cls] = way
            return way
        known = self._subjects.setdefault(cls, {})
        if len(known) >= _MOST_SUBJECTS:
            known.clear()
        known[event.subject] = way
        self.of.setdefault(cls, by_subject(cls.subject_field, known, self._slow))
        return way


def quick_way(engine: Engine, cls: type[Event], chosen: tuple[Hook, ...], among: Index) -> Way | None:
    """The quick way of one kind of event through `chosen`, or `None` if they have to go the slow one."""
    through = _through(chosen)
    if through is None:
        return None
    way = through(engine, cls, chosen, among)
    return _watched(engine, way) if engine.observers else way


def _through(chosen: tuple[Hook, ...]) -> Callable[..., Way] | None:
    if len(chosen) != 1:
        return _through_all if all(hook.plain for hook in chosen) else None
    hook, action = chosen[0], chosen[0].action
    if hook.plain and isinstance(action, Function):
        return _through_one if can_wait(action.call) else _straight_through_one
    return None if hook.once or hook.background else _through_runner


def _watched(engine: Engine, way: Way) -> Way:
    """The way, with observers told of where it led."""

    async def told(event: Event) -> Verdict:
        return engine.told(await way(event))

    return told


def by_subject(field: str, ways: dict[str | None, Way], otherwise: Way) -> Way:
    """The way that belongs to the event's subject; `otherwise` takes those seen for the first time."""

    def way(event: Event) -> Coroutine[Any, Any, Verdict]:
        return ways.get(getattr(event, field), otherwise)(event)

    return way


def _straight_through_one(engine: Engine, cls: type[Event], chosen: tuple[Hook, ...], among: Index) -> Way:
    """For a single hook that can never wait: nothing but the call, and its time."""
    clock, last_word = engine.clock, _last_word(cls, chosen)
    seat, call, wants_context, _, limit = _seated(chosen[0], engine)

    async def way(event: Event) -> Verdict:
        started, ctx = clock(), None
        try:
            if wants_context:
                ctx = Context(event, seat, started)
                answer = await call(event, ctx)
            else:
                answer = await call(event)
        except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, on the slow way
            answer = Raised(error)
        answered = clock()
        if answered - started > limit:
            answer = _overdue(answer, answered - started, limit)
        if answer is None:
            return Verdict(event, NOTHING, chosen, started, answered)
        return last_word(event, answer, started, answered) or await _slowly(
            Run(engine, event, chosen, among), [started, answered], ctx, answer
        )

    return way


def _through_one(engine: Engine, cls: type[Event], chosen: tuple[Hook, ...], among: Index) -> Way:
    """For a single hook that may have to wait: `first_step`, written out."""
    clock, last_word = engine.clock, _last_word(cls, chosen)
    seat, call, wants_context, _, limit = _seated(chosen[0], engine)
    take, give_back = idle.pop, idle.append

    async def way(event: Event) -> Verdict:
        started, ctx = clock(), None
        try:
            stepper = take()
        except IndexError:
            stepper = new_stepper()
        send, said, _ = stepper
        try:
            if wants_context:
                ctx = Context(event, seat, started)
                waits_for = send(call(event, ctx))
            else:
                waits_for = send(call(event))
        except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, on the slow way
            answer: Any = Raised(error)
        else:
            if waits_for is ANSWERED:
                answer, said[0] = said[0], None
                give_back(stepper)
            else:
                ctx = ctx or Context(event, seat, started)
                answer = await finish(Suspended(stepper, waits_for), limits(engine, ctx))
        answered = clock()
        if answered - started > limit:
            answer = _overdue(answer, answered - started, limit)
        if answer is None:
            return Verdict(event, NOTHING, chosen, started, answered)
        return last_word(event, answer, started, answered) or await _slowly(
            Run(engine, event, chosen, among), [started, answered], ctx, answer
        )

    return way


def _through_runner(engine: Engine, cls: type[Event], chosen: tuple[Hook, ...], among: Index) -> Way:
    """For a single hook of another kind, whose outcome is the verdict; nobody else has to judge what it rewrites."""
    hook, clock, seat = chosen[0], engine.clock, Seat(chosen[0], engine)

    async def way(event: Event) -> Verdict:
        outcome = await attempted(engine, hook, event, Context(event, seat, clock()))
        return Verdict(event, outcome.reply, told=(outcome,))

    return way


def _through_all(engine: Engine, cls: type[Event], chosen: tuple[Hook, ...], among: Index) -> Way:
    seats = [_seated(hook, engine) for hook in chosen]
    clock, last_word = engine.clock, _last_word(cls, chosen)

    async def way(event: Event) -> Verdict:
        now = started = clock()
        answered: list[float] = []
        for seat, call, wants_context, waits, limit in seats:
            ctx = None
            try:
                if wants_context:
                    ctx = Context(event, seat, now)
                    begun = call(event, ctx)
                else:
                    begun = call(event)
                answer = first_step(begun) if waits else await begun
            except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, on the slow way
                answer = Raised(error)
            if waits and answer.__class__ is Suspended:
                ctx = ctx or Context(event, seat, now)
                answer = await finish(answer, limits(engine, ctx))
            before, now = now, clock()
            answered.append(now)
            if now - before > limit:
                answer = _overdue(answer, now - before, limit)
            if answer is not None:
                return last_word(event, answer, started, answered) or await _slowly(
                    Run(engine, event, chosen, among), [started, *answered], ctx, answer
                )
        return Verdict(event, NOTHING, chosen, started, answered)

    return way


def _fits(cls: type[Event]) -> tuple[bool, ...]:
    """Of each decision, whether it fits the event."""
    return tuple(str(decision) in spec_of(cls).decisions for decision in Decision)


def _overdue(answer: Any, seconds: float, limit: float) -> Any:
    """An answer that came too late counts as none; what was raised, or timed out by itself, stays what it is."""
    return answer if answer.__class__ is Raised else Raised(blocked_loop(seconds, limit))


def _seated(hook: Hook, engine: Engine) -> tuple[Seat, Callable[..., Any], bool, bool, float]:
    """What the quick way needs to know of a hook."""
    action: Any = hook.action
    return Seat(hook, engine), action.call, action.takes_context, can_wait(action.call), hook.limit(engine.timeout)


def _last_word(cls: type[Event], chosen: tuple[Hook, ...]) -> Callable[..., Verdict | None]:
    """What makes the verdict at once if nothing is left to do: the answer only decides, and denies or came last.

    A hook that answers with the very reply it gave before is not checked again: replies do not change.
    """
    fits, name, known = _fits(cls), cls.event_name, None
    all_of_them = len(chosen)

    def last_word(event: Event, answer: Any, started: float, answered: float | list[float]) -> Verdict | None:
        nonlocal known
        if answer is known:
            reply = known
        elif answer.__class__ is dict:
            reply = only_decision(answer, name)
        elif answer.__class__ is Reply and only_decides(answer) and fits[answer.decision]:
            reply = known = answer
        else:
            return None
        if reply is None or (
            answered.__class__ is list and len(answered) < all_of_them and reply.decision is not _DENY
        ):
            return None
        return Verdict(event, reply, chosen, started, answered)

    return last_word


async def _slowly(run: Run, marks: Sequence[float], ctx: Context | None, step: Any) -> Verdict:
    """Go on from the hook that did not answer `None` at once; `marks` has the start, and when each had answered."""
    done = len(marks) - 2
    silent = quick_outcomes(run.event, NOTHING, run.chosen[:done], marks[: done + 1])
    begun = Begun(ctx or Context(run.event, Seat(run.chosen[done], run.engine), marks[done]), step)
    return merge(run.event, await sequential(run, silent, begun))
