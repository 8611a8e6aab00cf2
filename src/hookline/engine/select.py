"""INPUT → SELECT: which hooks an event concerns, in the order they run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from hookline.errors import EventError
from hookline.events import Event, spec_of
from hookline.hooks.hook import Hook

_MOST_SUBJECTS = 512


class Place(msgspec.Struct, frozen=True):
    """Where conditions on paths are read from."""

    project_dir: str = ""
    home: str = ""


class Row(msgspec.Struct):
    """The hooks of one event, and the selections already made for it."""

    hooks: tuple[Hook, ...]
    cache: dict[str | None, tuple[Hook, ...]]
    conditional: bool


class Index(msgspec.Struct, frozen=True):
    """An immutable picture of a set of hooks; a set that changes gets a new one."""

    hooks: tuple[Hook, ...] = ()
    rows: Mapping[type[Event], Row] = MappingProxyType({})
    place: Place = Place()


def index(hooks: Iterable[Hook], place: Place = Place()) -> Index:  # noqa: B008 - frozen
    """Sort hooks for selection: higher priority first, equal ones in the order given."""
    ordered = tuple(sorted(hooks, key=lambda hook: -hook.priority))
    events = dict.fromkeys(cls for hook in ordered for cls in hook.events)
    return Index(ordered, {cls: _row(cls, ordered) for cls in events}, place)


def _row(cls: type[Event], ordered: tuple[Hook, ...]) -> Row:
    hooks = tuple(hook for hook in ordered if cls in hook.events)
    conditional = any(hook.condition is not None or hook.when is not None for hook in hooks)
    return Row(hooks, {}, conditional)


def select(event: Event, among: Index) -> tuple[Hook, ...]:
    """The hooks that `event` concerns, in order. A matcher, condition or predicate that raises selects its hook."""
    row = among.rows.get(class_of(event))
    if row is None:
        return ()
    subject = event.subject
    chosen = row.cache.get(subject)
    if chosen is None:
        chosen = _matching(row, subject)
    if row.conditional:
        return tuple(hook for hook in chosen if wanted(hook, event, among.place))
    return chosen


def class_of(event: Event) -> type[Event]:
    """The catalogue's class of an event; a subclass of one is the same event."""
    if not isinstance(event, Event):
        raise EventError(f"expected an event such as `PreToolUse(…)`, got `{type(event).__name__}`")
    return spec_of(event).cls


def _matching(row: Row, subject: str | None) -> tuple[Hook, ...]:
    if len(row.cache) >= _MOST_SUBJECTS:
        row.cache.clear()
    chosen = row.cache[subject] = tuple(hook for hook in row.hooks if meant(hook, subject))
    return chosen


def meant(hook: Hook, subject: str | None) -> bool:
    """Whether the hook's matcher names this subject."""
    return _unless_it_raises(lambda: hook.matcher.matches(subject))


def wanted(hook: Hook, event: Event, place: Place) -> bool:
    """Whether the hook's own conditions hold for this event."""
    if hook.condition is not None and not _unless_it_raises(lambda: _holds(hook, event, place)):
        return False
    when = hook.when
    return when is None or _unless_it_raises(lambda: bool(when(event)))


def _holds(hook: Hook, event: Event, place: Place) -> bool:
    assert hook.condition is not None
    tool = getattr(event, "tool_name", None)
    if tool is None:
        return False  # FACTS §5: on an event without a tool a hook with `if` never runs
    inputs = getattr(event, "tool_input", None) or {}
    return hook.condition.matches(
        tool, inputs, cwd=event.cwd, project_dir=place.project_dir or event.cwd, home=place.home
    )


def _unless_it_raises(test: Callable[[], bool]) -> bool:
    """Whoever cannot say no gets asked: the hook runs and can judge for itself."""
    try:
        return test()
    except (Exception, SystemExit, KeyboardInterrupt):  # noqa: BLE001 - see above
        return True
