"""Edits take effect with the next event: before each one the files' signatures are compared, which takes microseconds.

An edit that cannot be read, or that is not trusted, changes nothing: what was good before stays, and it says why.
A trusted hook whose script has changed cannot go on as it was, so it fails closed until it is trusted again.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from hookline.core.engine import Engine
from hookline.core.hooks.hook import Function, Hook
from hookline.errors import HookFailed
from hookline.settings.files import Problem, file_state
from hookline.settings.hook_names import with_free_names
from hookline.settings.load import LoadedSettings, merge_files
from hookline.settings.trust.scripts import ExecutedFiles
from hookline.settings.trust.store import Policy, Status, Trust, ensure, untrusted, with_current_seal

_FRESH = 0.1  # seconds in which a second edit may leave the time stamp as it was: the text is read again


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True):
    """What an edit led to: a new set of hooks, or the last good one, and `problems` say why.

    `refused` has the hooks (by `source`) whose script is no longer what was trusted, and that script.
    """

    loaded: LoadedSettings
    hooks: tuple[Hook, ...]
    problems: tuple[Problem, ...] = ()
    refused: Mapping[str, str] = msgspec.field(default_factory=dict)


class Reloader:
    """Knows the last good settings, and notices when the files say something else.

    Raises `UntrustedHooks` when it is made, if the hooks may not run; `refresh` never does.
    """

    def __init__(
        self, read: Callable[[], LoadedSettings], *, policy: Policy = "error", trust: Trust | None = None
    ) -> None:
        self._read = read
        self._policy: Policy = policy
        self._trust = trust or Trust.load()
        self.loaded: LoadedSettings = ensure(read(), policy, self._trust)
        status = self._status(self.loaded)
        self._named = _named(status)
        self._content = _content(self.loaded, status, ())
        self._look(status, self.loaded)

    def refresh(self) -> SettingsChange | None:
        """What has changed since the last look; `None` if nothing has, which is the usual answer and a quick one."""
        if self._settled and signature(self._watching) == self._signature:
            return None
        read = self._read()
        fresh, broken = self._restored(read)
        self._trust = Trust(self._trust.path)
        status = self._status(fresh)
        before, self._content = self._content, _content(fresh, status, broken)
        change = None if before == self._content else self._judged(fresh, status, broken)
        if change is not None:
            self.loaded = change.loaded
        self._look(status, read)
        return change

    def _restored(self, read: LoadedSettings) -> tuple[LoadedSettings, tuple[Problem, ...]]:
        """Every file that an edit broke as it was when it was last good, and what is wrong with it now."""
        good = {file.source.path: file for file in self.loaded.files if file.source.path and not file.broken}
        files = [good.get(file.source.path, file) if file.broken else file for file in read.files]
        broken = tuple(p for old, new in zip(read.files, files, strict=True) if old is not new for p in old.problems)
        return (merge_files(read.places, files, read.source_problems) if broken else read), broken

    def _judged(self, fresh: LoadedSettings, status: Status, broken: tuple[Problem, ...]) -> SettingsChange:
        if status.blocking:
            error = untrusted(status, fresh, self._trust)
            said = _as_before((*broken, Problem(error.where, error.problem)))
            refused = _refused(self.loaded, self._status(self.loaded), self._named)
            hooks = tuple(unless_refused(hook, refused) for hook in self.loaded.hooks)
            return SettingsChange(loaded=self.loaded, hooks=hooks, problems=said, refused=refused)
        settled = ensure(fresh, "all" if self._policy == "all" else "error", self._trust)
        self._named = _named(status)
        return SettingsChange(loaded=settled, hooks=settled.hooks, problems=_as_before(broken) or settled.errors)

    def _status(self, loaded: LoadedSettings) -> Status:
        return Status() if self._policy == "all" else self._trust.status(loaded)

    def _look(self, status: Status, read: LoadedSettings) -> None:
        """Remember how everything looks that counts: settings, scripts of theirs and of the last good ones, trust."""
        scripts = [path for one in [*_named(status).values(), *self._named.values()] for path in one.watch]
        self._watching = tuple(dict.fromkeys((*self.loaded.watched, *read.watched, *scripts, str(self._trust.path))))
        self._signature = signature(self._watching)
        now = time.time()
        self._settled = not any(one is not None and abs(now - max(one[3:5]) / 1e9) < _FRESH for one in self._signature)


def _as_before(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(Problem(p.where, f"{p.message}; the previous hooks stay in place", p.severity) for p in problems)


def signature(paths: Iterable[str]) -> tuple[tuple[int, ...] | None, ...]:
    """What changes when a file is edited, replaced, removed or comes into being."""
    return tuple(map(file_state, paths))


def _refused(loaded: LoadedSettings, status: Status, named: Mapping[str, ExecutedFiles]) -> dict[str, str]:
    """The hooks, by `source`, that name a script which is no longer what was trusted, and that script."""
    changed = {change.path for change in status.changes if change.path != change.item.path}
    files: dict[str, set[str]] = {}
    for hook, one in (*named.items(), *_named(status).items()):
        files.setdefault(hook, set()).update(changed.intersection(one.files))
    return {hook: loaded.places.label(min(paths)) for hook, paths in files.items() if paths}


def unless_refused(hook: Hook, refused: Mapping[str, str]) -> Hook:
    """The hook, or if it is refused one in its place that fails, closed."""
    if hook.source not in refused:
        return hook
    problem = f"was not run: `{refused[hook.source]}` has changed since it was trusted"

    async def refuse(_: Any) -> None:
        raise HookFailed(f"{problem}; run `hookline trust` to look and decide")

    return msgspec.structs.replace(hook, action=Function(refuse, is_async=True), on_failure="block", background=False)


def _named(status: Status) -> dict[str, ExecutedFiles]:
    return {hook: named for item in status.items for hook, named in item.named.items()}


def _content(loaded: LoadedSettings, status: Status, broken: tuple[Problem, ...]) -> Any:
    """What makes two readings the same: what the files say, what is wrong with them, and what of it is trusted."""
    files = [(file.source.path, file.found, file.broken, msgspec.json.encode(file.raw)) for file in loaded.files]
    changes = [(change.item.path, change.path, change.kind, change.diff) for change in status.changes]
    return files, changes, broken


log: logging.Logger = logging.getLogger("hookline.settings")
OnProblem = Callable[[Problem], Any]


class LiveSettings:
    """The settings behind a set of hooks: `loaded` is what the files say, `refresh` looks for edits."""

    def __init__(
        self, engine: Engine, reloader: Reloader, env: Mapping[str, str] | None, on_problem: OnProblem | None
    ) -> None:
        self._engine = engine
        self._reloader = reloader
        self._env = env
        self._on_problem = on_problem or (
            lambda problem: log.log(logging.WARNING if problem.severity == "error" else logging.INFO, "%s", problem)
        )
        self._from_files: dict[int, Hook] = {}
        self._refused: dict[int, Hook] = {}
        first = reloader.loaded
        self.apply(SettingsChange(loaded=first, hooks=first.hooks, problems=first.problems))

    def refresh(self) -> SettingsChange | None:
        """Look for edits now and let them take effect; sets made with `watch=True` do so before every event."""
        change = self._reloader.refresh()
        if change is not None:
            self.apply(change)
        return change

    def apply(self, change: SettingsChange) -> None:
        """Let an edit take effect; hooks that were added by hand stay."""
        self.loaded: LoadedSettings = change.loaded
        registry = self._engine.registry
        present = registry.index.hooks
        kept = [self._refused.get(id(hook), hook) for hook in present if id(hook) not in self._from_files]
        by_hand = [with_current_seal(hook, self.loaded) for hook in kept]
        added = [unless_refused(hook, change.refused) for hook in by_hand]
        self._refused = {id(now): hook for now, hook in zip(added, by_hand, strict=True) if now is not hook}
        fresh = with_free_names(change.hooks, (hook.name for hook in added))
        self._from_files = {id(hook): hook for hook in fresh}
        env = self.loaded.env
        self._engine.env = {**(os.environ if self._env is None else self._env), **env} if env else self._env
        registry.replace((*fresh, *added))
        self.report(change.problems)

    def report(self, problems: Iterable[Problem]) -> None:
        """Say what is wrong; notes are left out."""
        for problem in problems:
            if problem.severity != "note":
                self._on_problem(problem)


def loaded_by(hooks: object) -> LoadedSettings | None:
    """What the settings files of a set of hooks say, if it was made from some."""
    settings = getattr(hooks, "settings", None)
    return settings.loaded if isinstance(settings, LiveSettings) else None
