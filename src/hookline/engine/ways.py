"""The quick way: what `fire` does when nobody watches and all chosen hooks are async functions.

Hooks are called in order for as long as they answer `None`; no task or outcome is made for that, and a timer only for
those that wait. The first that says something or raises is handed, with its context, to the slow way, which goes on
from there. A function whose code has no `await` in it can never wait, so it is awaited like any other coroutine; of
the others the first step is taken by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from hookline.engine.context import Context
from hookline.engine.execute import Begun, Run, limits, sequential
from hookline.engine.merge import merge
from hookline.engine.select import Index, class_of
from hookline.engine.step import Raised, Suspended, finish, first_step
from hookline.engine.verdict import Verdict, quick_outcomes
from hookline.events import Event, spec_of
from hookline.hooks.declare import can_wait
from hookline.hooks.hook import Hook
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
    """The quick way of one kind of event through `chosen`, or `None` if one of them is no plain async function."""
    if not all(hook.plain for hook in chosen):
        return None
    way = _through(chosen)(engine, cls, chosen, among)
    return _watched(engine, way) if engine.observers else way


def _through(chosen: tuple[Hook, ...]) -> Callable[..., Way]:
    if len(chosen) != 1:
        return _through_all
    _, _, waits = _seat(chosen[0])
    return _through_one if waits else _straight_through_one


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
    hook, clock, last_word = chosen[0], engine.clock, _last_word(cls, chosen)
    call, wants_context, _ = _seat(hook)

    async def way(event: Event) -> Verdict:
        started, ctx = clock(), None
        try:
            if wants_context:
                ctx = Context(event, hook, engine, started)
                answer = await call(event, ctx)
            else:
                answer = await call(event)
        except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, on the slow way
            answer = Raised(error)
        marks = (started, clock())
        if answer is None:
            return Verdict(event, NOTHING, chosen, marks)
        return last_word(event, marks, answer) or await _slowly(Run(engine, event, chosen, among), marks, ctx, answer)

    return way


def _through_one(engine: Engine, cls: type[Event], chosen: tuple[Hook, ...], among: Index) -> Way:
    """For a single hook that may have to wait: its first step by hand."""
    hook, clock, last_word = chosen[0], engine.clock, _last_word(cls, chosen)
    call, wants_context, _ = _seat(hook)

    async def way(event: Event) -> Verdict:
        started, ctx = clock(), None
        try:
            if wants_context:
                ctx = Context(event, hook, engine, started)
                answer = first_step(call(event, ctx))
            else:
                answer = first_step(call(event))
        except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, on the slow way
            answer = Raised(error)
        if answer.__class__ is Suspended:
            ctx = ctx or Context(event, hook, engine, started)
            answer = await finish(answer, limits(engine, ctx))
        marks = (started, clock())
        if answer is None:
            return Verdict(event, NOTHING, chosen, marks)
        return last_word(event, marks, answer) or await _slowly(Run(engine, event, chosen, among), marks, ctx, answer)

    return way


def _through_all(engine: Engine, cls: type[Event], chosen: tuple[Hook, ...], among: Index) -> Way:
    seats = [(hook, *_seat(hook)) for hook in chosen]
    clock, last_word = engine.clock, _last_word(cls, chosen)

    async def way(event: Event) -> Verdict:
        now = clock()
        marks = [now]
        for hook, call, wants_context, waits in seats:
            ctx = None
            try:
                if wants_context:
                    ctx = Context(event, hook, engine, now)
                    begun = call(event, ctx)
                else:
                    begun = call(event)
                answer = first_step(begun) if waits else await begun
            except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, on the slow way
                answer = Raised(error)
            if waits and answer.__class__ is Suspended:
                ctx = ctx or Context(event, hook, engine, now)
                answer = await finish(answer, limits(engine, ctx))
            now = clock()
            marks.append(now)
            if answer is not None:
                return last_word(event, marks, answer) or await _slowly(
                    Run(engine, event, chosen, among), marks, ctx, answer
                )
        return Verdict(event, NOTHING, chosen, marks)

    return way


def _fits(cls: type[Event]) -> tuple[bool, ...]:
    """Of each decision, whether it fits the event."""
    return tuple(str(decision) in spec_of(cls).decisions for decision in Decision)


def _seat(hook: Hook) -> tuple[Callable[..., Any], bool, bool]:
    """What the quick way needs to know of a hook."""
    action: Any = hook.action
    return action.call, action.takes_context, can_wait(action.call)


def _last_word(cls: type[Event], chosen: tuple[Hook, ...]) -> Callable[[Event, Sequence[float], Any], Verdict | None]:
    """What makes the verdict at once if nothing is left to do: the answer only decides, and denies or came last.

    A hook that answers with the very reply it gave before is not checked again: replies do not change.
    """
    fits, name, known = _fits(cls), cls.event_name, None

    def last_word(event: Event, marks: Sequence[float], answer: Any) -> Verdict | None:
        nonlocal known
        if answer is known:
            reply = known
        elif answer.__class__ is dict:
            reply = only_decision(answer, name)
        elif answer.__class__ is Reply and only_decides(answer) and fits[answer.decision]:
            reply = known = answer
        else:
            return None
        if reply is None or (len(marks) <= len(chosen) and reply.decision is not _DENY):
            return None
        return Verdict(event, reply, chosen, marks)

    return last_word


async def _slowly(run: Run, marks: Sequence[float], ctx: Context | None, step: Any) -> Verdict:
    """Go on from the hook that did not answer `None` at once."""
    done = len(marks) - 2
    silent = quick_outcomes(run.event, NOTHING, run.chosen[:done], marks[: done + 1])
    begun = Begun(ctx or Context(run.event, run.chosen[done], run.engine, marks[done]), step)
    return merge(run.event, await sequential(run, silent, begun))
