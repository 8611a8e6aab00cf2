"""The fast path: async functions that have nothing to say, which is what most hooks are most of the time.

They are called in order for as long as they answer `None`; no task or outcome is made for that, and a timer only for
those that wait. The first that says something is handed, as far as it came, to the dispatcher, which goes on from
there; only a bare decision that is the last word anyway becomes a verdict here, read by the same `parse_decision` as
there. A function whose code has no `await` in it can never wait, so it is awaited like any other coroutine; of the
others the first step is taken by hand. A single hook is asked without the loop, which would cost half as much as it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from hookline.core.engine.composition import decision_parser
from hookline.core.engine.context import Binding, Context, bind
from hookline.core.engine.coroutine_driver import SILENT, RaisedError, Suspended, drive, heard, idle, new_stepper, start
from hookline.core.engine.dispatch import Dispatcher, EventRun
from hookline.core.engine.select import EventHooks, HookIndex
from hookline.core.engine.verdict import Verdict, silent_outcomes
from hookline.core.hooks.hook import Hook
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Decision, Reply

Fire = Callable[[Any], Coroutine[Any, Any, Verdict]]  # takes an event through the hooks chosen for it

Clock = Callable[[], float]
Parse = Callable[[Any], Reply | None]
HandOver = Callable[[Any, Binding, Context | None, list[float], Any], Coroutine[Any, Any, Verdict]]
"""Goes on from a hook that needs more than the fast path: `marks` has the start, and when each hook had answered."""

_MOST_SUBJECTS = 512
_DENY = Decision.DENY  # looking a member up in its enum takes as long as the hook, on Python 3.11


class FastPaths:
    """The fast paths found so far, by kind of event; what has none goes to `otherwise`. A changed set starts over."""

    def __init__(self, dispatcher: Dispatcher, otherwise: Fire) -> None:
        self.of: dict[type[Event], Fire] = {}
        self.unheard: set[type[Event]] = set()  # those that no hook is for and no observer hears of
        self._dispatcher = dispatcher
        self._otherwise = otherwise
        self._subjects: dict[type[Event], dict[str | None, Fire]] = {}

    def remember(self, event: Event, row: EventHooks | None, chosen: tuple[Hook, ...], among: HookIndex,
                 notify: Callable[[Verdict], Verdict] | None) -> Fire:  # fmt: skip
        """The fast path for events like this one, from now on; `chosen` are plain, and none of `row` has conditions."""
        cls = event.__class__
        if row is None and notify is None:
            self.unheard.add(cls)
        fire = fast_path(self._dispatcher, cls, chosen, among) if chosen else _silent
        fire = fire if notify is None else _notifying(fire, notify)
        if row is None or cls.subject_field is None or all(hook.matcher.matches_all for hook in row.hooks):
            self.of[cls] = fire
            return fire
        known = self._subjects.setdefault(cls, {})
        if len(known) >= _MOST_SUBJECTS:
            known.clear()
        known[event.subject] = fire
        self.of.setdefault(cls, _by_subject(cls.subject_field, known, self._otherwise))
        return fire


async def _silent(event: Event) -> Verdict:
    return Verdict(event, NOTHING)


def _notifying(fire: Fire, notify: Callable[[Verdict], Verdict]) -> Fire:
    async def notifying(event: Event) -> Verdict:
        return notify(await fire(event))

    return notifying


def _by_subject(field: str, paths: dict[str | None, Fire], otherwise: Fire) -> Fire:
    def fire(event: Event) -> Coroutine[Any, Any, Verdict]:
        return paths.get(getattr(event, field), otherwise)(event)

    return fire


def fast_path(dispatcher: Dispatcher, cls: type[Event], chosen: tuple[Hook, ...], among: HookIndex) -> Fire:
    """What asks `chosen`, all of them plain, about one kind of event."""
    scope, spec = dispatcher.scope, spec_of(cls)
    parse = decision_parser(spec)
    bindings = [bind(hook, scope) for hook in chosen]

    async def hand_over(event: Event, one: Binding, ctx: Context | None, marks: list[float], answer: Any) -> Verdict:
        """Let the dispatcher go on from a hook that said more than a decision, raised, or took too long."""
        done = len(marks) - 2
        silent = silent_outcomes(event, NOTHING, chosen[:done], marks[: done + 1])
        started = ctx or Context(event, one, marks[-2]), answer
        return await dispatcher.dispatch(EventRun(event, spec, chosen, among, started=started), "sequential", silent)

    if len(bindings) == 1:
        return _one(bindings[0], chosen, scope.clock, parse, hand_over)
    return _all(bindings, chosen, scope.clock, parse, hand_over)


def _one(binding: Binding, chosen: tuple[Hook, ...], clock: Clock, parse: Parse, hand_over: HandOver) -> Fire:
    """A single hook, the commonest case: `_all` without its loop."""
    call: Any = binding.call
    wants_context, waits, limit = binding.wants_context, binding.waits, binding.limit
    spare: Any = None  # a stepper between two events

    async def fire(event: Event) -> Verdict:
        nonlocal spare
        started, ctx = clock(), None
        try:
            if wants_context:
                ctx = Context(event, binding, started)
                begun = call(event, ctx)
            else:
                begun = call(event)
            if not waits:
                answer = await begun
            else:  # as `start` does it
                stepper, spare = spare or (idle.pop() if idle else new_stepper()), None
                answer = stepper(begun)
                if answer is SILENT:
                    spare = stepper
                    if (answered := clock()) - started <= limit:
                        return Verdict(event, NOTHING, chosen, started, answered)
                    answer = None
                else:
                    answer = heard(stepper, answer)
        except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, by the dispatcher
            answer = RaisedError(error)
        if waits and answer.__class__ is Suspended:
            answer = await drive(answer, ctx or Context(event, binding, started))
        if (answered := clock()) - started <= limit:
            reply = NOTHING if answer is None else parse(answer)
            if reply is not None:
                return Verdict(event, reply, chosen, started, answered)
        return await hand_over(event, binding, ctx, [started, answered], answer)

    return fire


def _all(bindings: list[Binding], chosen: tuple[Hook, ...], clock: Clock, parse: Parse, hand_over: HandOver) -> Fire:
    """One hook after another, for as long as they have nothing to say."""
    steps: list[Any] = [(one, one.call, one.wants_context, one.waits, one.limit) for one in bindings]
    last = len(steps)

    async def fire(event: Event) -> Verdict:
        now = started = clock()
        answered: list[float] = []
        for binding, call, wants_context, waits, limit in steps:
            ctx = None
            try:
                if wants_context:
                    ctx = Context(event, binding, now)
                    begun = call(event, ctx)
                else:
                    begun = call(event)
                answer = start(begun) if waits else await begun
            except BaseException as error:  # noqa: BLE001 - an outcome, or raised again, by the dispatcher
                answer = RaisedError(error)
            if waits and answer.__class__ is Suspended:
                answer = await drive(answer, ctx or Context(event, binding, now))
            before, now = now, clock()
            answered.append(now)
            in_time = now - before <= limit
            if answer is None and in_time:
                continue
            reply = parse(answer) if in_time else None
            if reply is not None and (len(answered) == last or reply.decision is _DENY):
                return Verdict(event, reply, chosen, started, answered)
            return await hand_over(event, binding, ctx, [started, *answered], answer)
        return Verdict(event, NOTHING, chosen, started, answered)

    return fire
