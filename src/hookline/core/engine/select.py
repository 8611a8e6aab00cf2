"""INPUT → SELECT: which hooks an event concerns, in the order they run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from hookline.core.hooks.hook import Hook
from hookline.errors import EventError
from hookline.events import Event, spec_of

_MOST_SUBJECTS = 512


class EventHooks(msgspec.Struct):
    """The hooks of one event, and the selections already made for it."""

    hooks: tuple[Hook, ...]
    cache: dict[str | None, tuple[Hook, ...]]
    conditional: bool


class HookIndex(msgspec.Struct, frozen=True):
    """An immutable picture of a set of hooks; a set that changes gets a new one."""

    hooks: tuple[Hook, ...] = ()
    rows: Mapping[type[Event], EventHooks] = MappingProxyType({})
    project_dir: str = ""
    home: str = ""


def index(hooks: Iterable[Hook], project_dir: str = "", home: str = "") -> HookIndex:
    """Sort hooks for selection: higher priority first, equal ones in the order given.

    Conditions on paths are read from `project_dir` and `home`.
    """
    ordered = tuple(sorted(hooks, key=lambda hook: -hook.priority))
    by_event: dict[type[Event], list[Hook]] = {}
    for hook in ordered:
        for cls in hook.events:
            by_event.setdefault(cls, []).append(hook)
    rows = {cls: _row(_shared(tuple(hooks), ordered)) for cls, hooks in by_event.items()}
    return HookIndex(ordered, rows, project_dir, home)


def _shared(hooks: tuple[Hook, ...], ordered: tuple[Hook, ...]) -> tuple[Hook, ...]:
    """The whole set where an event has all of it, so that it is kept once."""
    return ordered if hooks == ordered else hooks


def _row(hooks: tuple[Hook, ...]) -> EventHooks:
    conditional = any(hook.condition is not None or hook.when is not None for hook in hooks)
    return EventHooks(hooks, {}, conditional)


def select(event: Event, among: HookIndex) -> tuple[Hook, ...]:
    """The hooks that `event` concerns, in order. A matcher, condition or predicate that raises selects its hook."""
    return select_from(among.rows.get(class_of(event)), event, among)


def select_from(row: EventHooks | None, event: Event, among: HookIndex) -> tuple[Hook, ...]:
    """The same for a caller that has looked up the hooks of such events."""
    if row is None:
        return ()
    subject = event.subject
    chosen = row.cache.get(subject)
    if chosen is None:
        chosen = _matching(row, subject)
    if row.conditional:
        return tuple(hook for hook in chosen if conditions_hold(hook, event, among))
    return chosen


def class_of(event: Event) -> type[Event]:
    """The catalogue's class of an event; a subclass of one is the same event."""
    if not isinstance(event, Event):
        raise EventError(f"expected an event such as `PreToolUse(…)`, got `{type(event).__name__}`")
    return spec_of(event).cls


def _matching(row: EventHooks, subject: str | None) -> tuple[Hook, ...]:
    if len(row.cache) >= _MOST_SUBJECTS:
        row.cache.clear()
    chosen = row.cache[subject] = tuple(hook for hook in row.hooks if matches_subject(hook, subject))
    return chosen


def matches_subject(hook: Hook, subject: str | None) -> bool:
    """Whether the hook's matcher names this subject."""
    return _unless_it_raises(lambda: hook.matcher.matches(subject))


def conditions_hold(hook: Hook, event: Event, among: HookIndex) -> bool:
    """Whether the hook's own conditions hold for this event."""
    if hook.condition is not None and not _unless_it_raises(lambda: _rule_holds(hook, event, among)):
        return False
    when = hook.when
    return when is None or _unless_it_raises(lambda: bool(when(event)))


def applies_to(hook: Hook, event: Event, among: HookIndex) -> bool:
    """Whether `hook` would be asked about `event`."""
    named = class_of(event) in hook.events and matches_subject(hook, event.subject)
    return named and conditions_hold(hook, event, among)


def _rule_holds(hook: Hook, event: Event, among: HookIndex) -> bool:
    assert hook.condition is not None
    tool = event.tool_name
    if tool is None:
        return False  # FACTS.md §5: on an event without a tool a hook with `if` never runs
    inputs = event.tool_input or {}
    return hook.condition.matches(
        tool, inputs, cwd=event.cwd, project_dir=among.project_dir or event.cwd, home=among.home
    )


def _unless_it_raises(test: Callable[[], bool]) -> bool:
    """A predicate that fails does not say no: the hook runs and can judge for itself."""
    try:
        return test()
    except (Exception, SystemExit, KeyboardInterrupt):  # noqa: BLE001 - see above
        return True
