"""`Hooks`: the engine with everything that hooks can be, and every place they can come from."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hookline.engine import Engine, Order, RunnerFor, Verdict
from hookline.events import Event
from hookline.hooks.hook import Hook
from hookline.runners import runner_for
from hookline.runners.services import Services

if TYPE_CHECKING:
    from pathlib import Path

    from hookline.settings import Change, Loaded, Policy, Problem, Reloader, Trust

log = logging.getLogger("hookline.settings")


class Hooks(Engine):
    """A set of hooks and their engine: `on`, `add`, `fire`.

    `order="parallel"` runs all hooks of an event at once. `timeout` is the set's own default in seconds. `env` is what
    hooks see as their environment; `project_dir` is what conditions on paths are relative to.
    """

    loaded: Loaded | None = None
    """What the settings files say, in a set that was made by `from_settings`."""

    def __init__(
        self,
        *,
        order: Order = "sequential",
        timeout: float | None = None,
        runners: RunnerFor = runner_for,
        env: Mapping[str, str] | None = None,
        project_dir: str = "",
        grace: float = 1.0,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        super().__init__(
            order=order, timeout=timeout, runners=runners, env=env, project_dir=project_dir, grace=grace, clock=clock
        )
        self.services = Services()

    @classmethod
    def from_settings(
        cls,
        project_dir: str | Path = ".",
        *,
        settings: str | Path | Mapping[str, Any] | Sequence[Any] | None = None,
        setting_sources: str | Iterable[str] | None = None,
        plugin_dirs: Iterable[str | Path] = (),
        bare: bool = False,
        trust: Policy = "error",
        watch: bool = True,
        on_problem: Callable[[Problem], Any] | None = None,
        home: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        managed: str | Path | None = None,
        trusted: Trust | None = None,
        order: Order = "parallel",
        timeout: float | None = None,
        runners: RunnerFor = runner_for,
    ) -> Hooks:
        """The hooks that settings files declare for a project: managed, user, project, local, `settings`, plugins.

        A project's own hooks must have been trusted (`hookline trust`): else `Untrusted` is raised. `trust="all"` runs
        them all the same; a function gets the `Status` and says whether to trust it. With `watch` an edit takes effect
        with the next event. What is wrong with the files goes to `on_problem` (else it is logged) and is in
        `hooks.loaded.problems`; no file can make this fail.
        """
        from hookline.settings import Reloader, Trust, load
        from hookline.settings.sources import anchored, whole

        project, plugins, given = whole(project_dir), [whole(folder) for folder in plugin_dirs], anchored(settings)
        wanted = setting_sources if setting_sources is None or isinstance(setting_sources, str) else (*setting_sources,)

        def read() -> Loaded:
            return load(
                project, settings=given, setting_sources=wanted, plugin_dirs=plugins, bare=bare, home=home,
                env=env, managed=managed,
            )  # fmt: skip

        reloader = Reloader(read, policy=trust, trust=trusted or Trust.load(env=env, home=home))
        made = (_Watched if watch else cls)(
            order=order, timeout=timeout, runners=runners, project_dir=str(reloader.loaded.places.project_dir)
        )
        made._begin(reloader, env, on_problem or _log)  # noqa: SLF001 - its own class
        return made

    def for_sdk(self) -> dict[Any, list[Any]]:
        """What `ClaudeAgentOptions(hooks=…)` of the official SDK takes, so that its programs get this engine."""
        from hookline.hosts.claude_code import for_sdk

        return for_sdk(self)

    def _begin(self, reloader: Reloader, env: Mapping[str, str] | None, on_problem: Callable[[Problem], Any]) -> None:
        self._reloader, self._base_env, self._on_problem = reloader, env, on_problem
        self._from_files: dict[int, Hook] = {}
        self._refused: dict[int, Hook] = {}
        self._take(reloader.loaded, reloader.hooks, {})
        self._say(reloader.loaded.problems)

    def refresh(self) -> Change | None:
        """Look for edits now and let them take effect; sets made with `watch=True` do so before every event."""
        change = self.look()
        if change is not None:
            self.take(change)
        return change

    def look(self) -> Change | None:
        """What the files say now, if that has changed; nothing takes effect before `take`."""
        return None if self.loaded is None else self._reloader.refresh()

    def take(self, change: Change) -> None:
        """Let an edit take effect; hooks that were added by hand stay."""
        self._take(change.loaded, change.hooks, change.refused)
        self._say(change.problems)

    def _take(self, loaded: Loaded, hooks: Iterable[Hook], refused: Mapping[str, str]) -> None:
        from hookline.settings.names import with_free_names
        from hookline.settings.watcher import unless_refused

        by_hand = [self._refused.get(id(hook), hook) for hook in self.hooks if id(hook) not in self._from_files]
        added = [unless_refused(hook, refused) for hook in by_hand]
        self._refused = {id(now): hook for now, hook in zip(added, by_hand, strict=True) if now is not hook}
        fresh = with_free_names(hooks, (hook.name for hook in added))
        self._from_files = {id(hook): hook for hook in fresh}
        self.loaded = loaded
        base = os.environ if self._base_env is None else self._base_env
        self.env = {**base, **loaded.env} if loaded.env else self._base_env
        self.replace((*fresh, *added))

    def _say(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if problem.severity != "note":
                self._on_problem(problem)


class _Watched(Hooks):
    """Hooks from files that are looked at again before every event."""

    async def fire(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Verdict:
        self.refresh()
        return await super().fire(event, deadline=deadline, only=only)


def _log(problem: Problem) -> None:
    log.log(logging.WARNING if problem.severity == "error" else logging.INFO, "%s", problem)
