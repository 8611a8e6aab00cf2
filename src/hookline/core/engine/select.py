"""INPUT → SELECT: which hooks an event concerns, in the order they run. Pure."""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import msgspec

from hookline.core.hooks.condition import Condition, PathContext
from hookline.core.hooks.hook import Action, Hook
from hookline.errors import DuplicateHook, EventError, UnknownHook
from hookline.events import Event, EventSpec, spec_of

_MOST_SUBJECTS = 512


class EventHooks(msgspec.Struct, frozen=True):
    """The hooks of one event; `named` has those whose matcher names a subject, and remembers them."""

    hooks: tuple[Hook, ...]
    named: Callable[[str | None], tuple[Hook, ...]]
    conditional: bool


class HookIndex(msgspec.Struct, frozen=True):
    """An immutable picture of a set of hooks; a set that changes gets a new one."""

    hooks: tuple[Hook, ...] = ()
    rows: Mapping[type[Event], EventHooks] = MappingProxyType({})
    project_dir: str = ""  # where conditions on paths are read from
    home: str = ""


def index(hooks: Iterable[Hook], project_dir: str = "", home: str = "") -> HookIndex:
    """Sort hooks for selection: higher priority first, equal ones in the order given."""
    ordered = tuple(sorted(hooks, key=lambda hook: -hook.priority))
    by_event: dict[type[Event], list[Hook]] = {}
    for hook in ordered:
        for cls in hook.events:
            by_event.setdefault(cls, []).append(hook)
    rows: dict[type[Event], EventHooks] = {}
    for cls, own in by_event.items():
        conditional = any(hook.condition is not None or hook.when is not None for hook in own)
        hooks_of = ordered if len(own) == len(ordered) else tuple(own)  # a whole set once
        rows[cls] = EventHooks(hooks_of, lru_cache(_MOST_SUBJECTS)(partial(_naming, hooks_of)), conditional)
    return HookIndex(ordered, rows, project_dir, home)


def _naming(hooks: tuple[Hook, ...], subject: str | None) -> tuple[Hook, ...]:
    return tuple(hook for hook in hooks if matches_subject(hook, subject))


def select(event: Event, among: HookIndex) -> tuple[Hook, ...]:
    """The hooks that `event` concerns, in order. A matcher, condition or predicate that raises selects its hook."""
    return select_from(among.rows.get(row_of(event).cls), event, among)


def select_from(row: EventHooks | None, event: Event, among: HookIndex) -> tuple[Hook, ...]:
    """The same for a caller that has looked up the hooks of such events."""
    if row is None:
        return ()
    chosen = row.named(event.subject)
    if row.conditional:
        return tuple(hook for hook in chosen if conditions_hold(hook, event, among))
    return chosen


def row_of(event: Event) -> EventSpec:
    """The catalogue's row of an event; a subclass of one is the same event."""
    if not isinstance(event, Event):
        raise EventError(f"expected an event such as `PreToolUse(…)`, got `{type(event).__name__}`")
    return spec_of(event)


def matches_subject(hook: Hook, subject: str | None) -> bool:
    """Whether the hook's matcher names this subject."""
    return _unless_it_raises(lambda: hook.matcher.matches(subject))


def conditions_hold(hook: Hook, event: Event, among: HookIndex) -> bool:
    """Whether the hook's own conditions hold for this event."""
    rule, when = hook.condition, hook.when
    if rule is not None and not _unless_it_raises(lambda: _rule_holds(rule, event, among)):
        return False
    return when is None or _unless_it_raises(lambda: bool(when(event)))


def applies_to(hook: Hook, event: Event, among: HookIndex) -> bool:
    """Whether `hook` would be asked about `event`."""
    named = row_of(event).cls in hook.events and matches_subject(hook, event.subject)
    return named and conditions_hold(hook, event, among)


def _rule_holds(rule: Condition, event: Event, among: HookIndex) -> bool:
    if event.tool_name is None:
        return False  # FACTS.md §5: on an event without a tool a hook with `if` never runs
    place = PathContext(event.cwd, among.project_dir or event.cwd, among.home)
    return rule.matches(event.tool_name, event.tool_input or {}, place)


def _unless_it_raises(test: Callable[[], bool]) -> bool:
    """A predicate that fails does not say no: the hook runs and can judge for itself."""
    try:
        return test()
    except (Exception, SystemExit, KeyboardInterrupt):  # noqa: BLE001 - see above
        return True


class Registry:
    """Hooks may be added and removed from any thread while events fire: a running `fire` keeps the picture it has."""

    def __init__(self, project_dir: str, home: str, on_change: Callable[[], None]) -> None:
        self.project_dir = project_dir
        self.home = home
        self._on_change = on_change
        self._lock = threading.RLock()
        self._hooks: list[Hook] = []
        self._names: dict[str, Hook] | None = None
        self._numbers: dict[str, int] = {}
        self._index: HookIndex | None = None
        self._spent: set[str] = set()

    @property
    def index(self) -> HookIndex:
        """The set as it is now, sorted for selection; made when the first event after a change fires."""
        current = self._index
        if current is None:
            with self._lock:
                current = self._index = index(self._hooks, self.project_dir, self.home)
                self._names = None  # of use only to those who register, and large
        return current

    def only(self, name: str) -> HookIndex:
        hooks = self.index.hooks
        named = [hook for hook in hooks if hook.name == name]
        if not named:
            raise UnknownHook(name, [hook.name for hook in hooks])
        return index(named, self.project_dir, self.home)

    def add(self, hooks: Iterable[Hook], *, named: bool) -> tuple[Hook, ...]:
        """Register hooks; one without a name of its own (`named=False`) gets a number if its name is taken."""
        with self._lock:
            if self._names is None:
                self._names = {hook.name: hook for hook in self._hooks}
            added: dict[str, Hook] = {}
            for hook in hooks:
                fresh = self._with_free_name(hook, ChainMap(added, self._names), named=named)
                added[fresh.name] = fresh
            self._names.update(added)
            self._hooks.extend(added.values())
            self._changed()
        return tuple(added.values())

    def _with_free_name(self, hook: Hook, known: Mapping[str, Hook], *, named: bool) -> Hook:
        """The hook under a name that is free; a chosen name that is taken, or the same hook again, is refused."""
        other = known.get(hook.name)
        if other is None:
            return hook
        same = hook.events == other.events and hook.matcher.pattern == other.matcher.pattern
        if named or (same and _runs(hook.action) == _runs(other.action)):
            raise DuplicateHook(hook.name)
        number = self._numbers.get(hook.name, 2)
        while f"{hook.name}#{number}" in known:
            number += 1
        self._numbers[hook.name] = number + 1
        return msgspec.structs.replace(hook, name=f"{hook.name}#{number}")

    def remove(self, name: str) -> Hook:
        """Take a hook out of the set; events that already fire still see it."""
        with self._lock:
            for hook in self._hooks:
                if hook.name == name:
                    self._spent.discard(name)
                    self.replace([other for other in self._hooks if other is not hook])
                    return hook
        raise UnknownHook(name, [hook.name for hook in self.index.hooks])

    def replace(self, hooks: Iterable[Hook]) -> None:
        """Put another set of hooks in place of all there are, at once (a settings file was edited)."""
        with self._lock:
            self._hooks, self._names, self._numbers = list(hooks), None, {}
            self._changed()

    def _changed(self) -> None:
        self._index = None
        self._on_change()

    def unspent(self, chosen: tuple[Hook, ...]) -> tuple[Hook, ...]:
        """Leave out hooks declared `once` that have run."""
        if not self._spent:
            return chosen
        return tuple(hook for hook in chosen if not (hook.once and hook.name in self._spent))

    def acquire_once(self, hook: Hook) -> bool:
        """Whether a hook declared `once` may run now; of several events at once, one gets it."""
        with self._lock:
            free = hook.name not in self._spent
            self._spent.add(hook.name)
        return free

    def release_once(self, hook: Hook) -> None:
        """A hook declared `once` has run in vain and may run again."""
        with self._lock:
            self._spent.discard(hook.name)
            self._on_change()  # what was cached meanwhile leaves it out


def _runs(action: Action) -> Any:
    return getattr(action, "call", action)
