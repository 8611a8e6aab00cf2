"""A set of hooks that follows its settings files: an edit takes effect with the next event."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookline.core.engine import Engine
from hookline.core.hooks.hook import Hook
from hookline.settings.hook_names import with_free_names
from hookline.settings.load import LoadedSettings
from hookline.settings.problems import Problem
from hookline.settings.trust.store import with_current_seal
from hookline.settings.watcher import Reloader, SettingsChange, unless_refused

log: logging.Logger = logging.getLogger("hookline.settings")


class LiveSettings:
    """The settings behind a set of hooks: `loaded` is what the files say, `refresh` looks for edits."""

    def __init__(
        self,
        engine: Engine,
        reloader: Reloader,
        env: Mapping[str, str] | None,
        on_problem: Callable[[Problem], Any] | None,
    ) -> None:
        self._engine = engine
        self._reloader = reloader
        self._env = env
        self._on_problem = on_problem or _log
        self._from_files: dict[int, Hook] = {}
        self._refused: dict[int, Hook] = {}
        self.loaded: LoadedSettings = reloader.loaded
        self._apply(reloader.loaded, reloader.hooks, {})
        self.report(reloader.loaded.problems)

    def refresh(self) -> SettingsChange | None:
        """Look for edits now and let them take effect; sets made with `watch=True` do so before every event."""
        change = self.poll()
        if change is not None:
            self.apply(change)
        return change

    def poll(self) -> SettingsChange | None:
        """What the files say now, if that has changed; nothing takes effect before `apply`."""
        return self._reloader.refresh()

    def apply(self, change: SettingsChange) -> None:
        """Let an edit take effect; hooks that were added by hand stay."""
        self._apply(change.loaded, change.hooks, change.refused)
        self.report(change.problems)

    def _apply(self, loaded: LoadedSettings, hooks: Iterable[Hook], refused: Mapping[str, str]) -> None:
        registry = self._engine.registry
        present = registry.index.hooks
        kept = [self._refused.get(id(hook), hook) for hook in present if id(hook) not in self._from_files]
        by_hand = [with_current_seal(hook, loaded) for hook in kept]
        added = [unless_refused(hook, refused) for hook in by_hand]
        self._refused = {id(now): hook for now, hook in zip(added, by_hand, strict=True) if now is not hook}
        fresh = with_free_names(hooks, (hook.name for hook in added))
        self._from_files = {id(hook): hook for hook in fresh}
        self.loaded = loaded
        base = os.environ if self._env is None else self._env
        self._engine.env = {**base, **loaded.env} if loaded.env else self._env
        registry.replace((*fresh, *added))

    def report(self, problems: Iterable[Problem]) -> None:
        """Say what is wrong; notes are left out."""
        for problem in problems:
            if problem.severity != "note":
                self._on_problem(problem)


def loaded_by(hooks: object) -> LoadedSettings | None:
    """What the settings files of a set of hooks say, if it was made from some."""
    settings = getattr(hooks, "settings", None)
    return settings.loaded if isinstance(settings, LiveSettings) else None


def _log(problem: Problem) -> None:
    log.log(logging.WARNING if problem.severity == "error" else logging.INFO, "%s", problem)
