"""The hooks of one set: by name, and as a picture in the order they run."""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from hookline.core.engine.select import HookIndex, index
from hookline.core.hooks.actions import Action
from hookline.core.hooks.hook import Hook
from hookline.errors import DuplicateHook, UnknownHook


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
                current = self._index = self._indexed(self._hooks)
                self._names = None  # of use only to those who register, and large
        return current

    def _indexed(self, hooks: Iterable[Hook]) -> HookIndex:
        return index(hooks, self.project_dir, self.home)

    def only(self, name: str) -> HookIndex:
        """A picture of a single hook."""
        hooks = self.index.hooks
        named = [hook for hook in hooks if hook.name == name]
        if not named:
            raise UnknownHook(name, [hook.name for hook in hooks])
        return self._indexed(named)

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
        if named or _same(hook, other):
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

    # -- hooks that run once -------------------------------------------------------------------------------------

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


def _same(a: Hook, b: Hook) -> bool:
    def run(action: Action) -> Any:
        return getattr(action, "call", action)

    return run(a.action) == run(b.action) and a.events == b.events and a.matcher.pattern == b.matcher.pattern
