"""Hooks of projects and plugins run only when they have been looked at: what was trusted, and what has changed since.

Trusted is everything that a file says and that can do anything (hooks, `env`, permissions, `model`, servers, imports
from outside the project), and the scripts that its hooks run, byte for byte. The record lies in the user's own
configuration folder, with copies, so that a change can be shown. Managed and user settings and `--settings` files need
no trust: their authors could run anything anyway.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from hookline.core.files import locked, private_folder, write_atomically
from hookline.core.hooks.declare import name_of
from hookline.core.hooks.hook import Cedar, Command, Function, Hook, Http, McpTool, Prompt, Rego, SealedFiles
from hookline.errors import ConfigError, UntrustedHooks
from hookline.settings.files import HookScript, Problem, pretty, read_json, read_script
from hookline.settings.load import LoadedSettings, merge_files
from hookline.settings.parse import parse_hooks
from hookline.settings.policy import File, sensitive
from hookline.settings.sources import absolute_path
from hookline.settings.trust.code_imports import Listing
from hookline.settings.trust.scripts import ExecutedFiles, files_run_by
from hookline.settings.trust.seal import Seal

Policy = Literal["error", "all"] | Callable[["Status"], bool]
"""What to do about hooks that are not trusted: raise `UntrustedHooks`, run them all the same (`--trust`), or ask."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a project or plugin: what it says, and the scripts it names.

    `runs` lists what its hooks run, unless a switch keeps them from it; `sets` what else it says. `named` says which
    hook (by its `source`) runs which files, `notes` where that cannot be told: those hooks are trusted as commands, not
    by content.
    """

    path: str
    label: str
    root: str
    definitions: str
    runs: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    scripts: tuple[HookScript, ...] = ()
    named: Mapping[str, ExecutedFiles] = msgspec.field(default_factory=dict)


def items_of(loaded: LoadedSettings) -> tuple[Item, ...]:
    """Everything of these settings that a project or plugin brought and that takes effect."""
    readings: dict[str, list[File]] = {}  # of one file there may be two: a plugin.json that holds several tables
    for file in loaded.files:
        if file.source.foreign and sensitive(file.raw):
            readings.setdefault(file.source.path, []).append(file)
    return tuple(_item(files, loaded) for files in readings.values())


def _item(files: Sequence[File], loaded: LoadedSettings) -> Item:
    source, project = files[0].source, str(loaded.places.project_dir)
    roots, runs = (source.root, project), list[Hook]()
    named: dict[str, ExecutedFiles] = {}
    for file in files:
        hooks = parse_hooks(file.raw.get("hooks", {}), file.source).hooks
        runs += hooks if loaded.switches.allows(file.source) else ()
        actions = [(hook.source, hook.action, loaded.env) for hook in hooks]
        for name, action, env in (*actions, *((name, action, {}) for name, action in _servers(file))):
            named[name] = named.get(name, ExecutedFiles()) | files_run_by(action, roots, project, env)
    named = _same_listings(named)
    paths = sorted({path for one in named.values() for path in one.files})
    found = [script for path in paths if (script := read_script(path)) is not None]
    listings = sorted({one for each in named.values() for one in each.listings}, key=lambda one: one.folder)
    kept = [sensitive(file.raw) for file in files]
    lines = [f"{', '.join(one.event_name for one in hook.events)}: {what_runs(hook)}" for hook in runs]
    return Item(
        path=source.path,
        label=source.label,
        root=source.root,
        definitions="\n".join(map(pretty, kept)),
        runs=tuple(dict.fromkeys(lines)),
        sets=tuple(line for one in kept for line in stated(one)),
        notes=tuple(dict.fromkeys(note for one in named.values() for note in one.notes)),
        scripts=(*found, *(one.read() for one in listings)),
        named=named,
    )


def _servers(file: File) -> Iterator[tuple[str, Command]]:
    """The programs of a `.mcp.json`: what they run is looked at like what hooks run."""
    servers = file.raw.get("mcpServers")
    for name, entry in servers.items() if isinstance(servers, dict) and file.source.kind == "mcp" else ():
        if isinstance(entry, dict) and isinstance(entry.get("command"), str):
            args = tuple(str(word) for word in entry.get("args") or ())
            yield f"server {name}", Command(command=entry["command"], args=args, plugin_root=file.source.plugin_root)


def _same_listings(named: dict[str, ExecutedFiles]) -> dict[str, ExecutedFiles]:
    """One listing of each folder: whatever any of the hooks may import from it."""
    merged: dict[str, Listing] = {}
    for one in (listing for each in named.values() for listing in each.listings):
        before = merged.get(one.folder, one)
        names = {*before.names, *one.names} if before.names and one.names else ()  # none: all of them count
        merged[one.folder] = Listing(one.folder, tuple(sorted(names)), code=before.code or one.code)
    folders = {hook: dict.fromkeys(one.folder for one in each.listings) for hook, each in named.items()}
    listed = {hook: tuple(merged[folder] for folder in kept) for hook, kept in folders.items()}
    return {hook: msgspec.structs.replace(each, listings=listed[hook]) for hook, each in named.items()}


def stated(kept: Mapping[str, Any]) -> Iterator[str]:
    """What a file says besides its hooks, one line each."""
    for key, value in kept.items():
        each = key in _EACH and isinstance(value, dict)
        rows = {f".{name}": entry for name, entry in value.items()} if each else {"": value}
        for name, entry in rows.items() if key != "hooks" else ():
            for one in entry if isinstance(entry, list) else [entry]:
                yield f"{key}{name}: {one if isinstance(one, str) else pretty(one, indent=0)}"


_EACH = ("env", "permissions", "mcpServers", "enabledPlugins", "extraKnownMarketplaces", "sandbox")


def what_runs(hook: Hook) -> str:
    """What a hook does, on one line, for those who must decide."""
    action = hook.action
    if isinstance(action, Command):
        return " ".join([action.command, *map(repr, action.args or ())])
    if isinstance(action, Http):
        return f"POST {action.url}"
    if isinstance(action, McpTool):
        return f"mcp {action.server}.{action.tool}"
    if isinstance(action, Cedar | Rego):
        return f"{type(action).__name__.lower()} {action.policies}"
    if isinstance(action, Function):
        return f"function {name_of(action.call)}"
    return f"{'prompt' if isinstance(action, Prompt) else 'agent'} {action.prompt!r}"


class TrustChange(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from what was trusted; `item` is the settings file, `path` what changed: that file or a script."""

    item: Item
    path: str
    kind: Literal["new", "changed", "gone"]
    diff: str = ""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Whether everything is trusted; if not, what changed. `items` is all that needs trust."""

    items: tuple[Item, ...] = ()
    changes: tuple[TrustChange, ...] = ()

    @property
    def trusted(self) -> bool:
        return not self.changes

    @property
    def untrusted(self) -> tuple[Item, ...]:
        paths = {change.item.path for change in self.changes}
        return tuple(item for item in self.items if item.path in paths)

    @property
    def blocking(self) -> bool:
        """Whether any hook is among what is not trusted; `env` and switches alone are only left out."""
        return any(item.runs for item in self.untrusted)


class _TrustedFile(msgspec.Struct):
    definitions: str = ""
    scripts: dict[str, HookScript] = msgspec.field(default_factory=dict)
    at: str = ""


def trust_file(env: Mapping[str, str] | None = None, home: str | Path | None = None) -> Path:
    """Where trust is recorded: `hookline/trust.json` in the user's configuration folder."""
    moved = env is not None or home is None
    env = os.environ if env is None else env
    base = env.get("XDG_CONFIG_HOME") if moved else None
    return absolute_path(base or Path(home or env.get("HOME") or "~", ".config")) / "hookline" / "trust.json"


class Trust:
    """What a user has trusted so far."""

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        self.problems: tuple[Problem, ...] = ()
        self._read()

    @classmethod
    def load(
        cls, path: str | Path | None = None, *, env: Mapping[str, str] | None = None, home: str | Path | None = None
    ) -> "Trust":
        """Read the record; a damaged one trusts nothing and says so in `problems`."""
        return cls(path or trust_file(env, home))

    def _read(self) -> None:
        self._kept: dict[str, _TrustedFile] = {}
        value, problems = read_json(str(self.path), str(self.path))
        wrong = [problem.message for problem in problems if value is None]
        if value is not None:
            try:
                self._kept = msgspec.convert(value, _Record).trusted
            except msgspec.ValidationError as error:
                wrong = [str(error).lower()]
        damaged = "is damaged, so nothing is trusted until you run `hookline trust`"
        self.problems = tuple(Problem(str(self.path), f"{message}; {damaged}") for message in wrong)

    def status(self, loaded: LoadedSettings) -> Status:
        """What of these settings needs trust, and what of it is new or has changed."""
        items = items_of(loaded)
        return Status(items=items, changes=tuple(change for item in items for change in self._changes(item)))

    def _changes(self, item: Item) -> Iterator[TrustChange]:
        kept = self._kept.get(item.path)
        if kept is None or kept.definitions != item.definitions:
            diff = _diff(kept.definitions if kept else "", item.definitions, item.label)
            yield TrustChange(item=item, path=item.path, kind="changed" if kept else "new", diff=diff)
        before, now = kept.scripts if kept else {}, {script.path: script for script in item.scripts}
        for path in sorted({*now, *before}):
            old, new = before.get(path), now.get(path)
            if old is None or new is None or old.sha256 != new.sha256:
                diff = _diff(old.text if old else "", new.text if new else "", path)
                kind: Literal["new", "changed", "gone"] = "gone" if new is None else "new" if old is None else "changed"
                yield TrustChange(item=item, path=path, kind=kind, diff=diff)

    def record(self, items: Iterable[Item]) -> None:
        """Trust these from now on. The record is locked and replaced in one step, so two at once lose nothing."""
        at = datetime.now(UTC).isoformat()
        new = {item.path: _TrustedFile(item.definitions, {one.path: one for one in item.scripts}, at) for item in items}
        with self._changing():
            if self.problems:
                with contextlib.suppress(OSError):
                    self.path.replace(self.path.with_suffix(".damaged"))
            self._kept.update(new)
            self.problems = ()

    def forget(self, root: str | Path) -> int:
        """Trust nothing under this folder any longer; says how many files that were."""
        gone_from = absolute_path(root)
        with self._changing():
            gone = [path for path in self._kept if Path(path).is_relative_to(gone_from)]
            for path in gone:
                del self._kept[path]
        return len(gone)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Alone with the record, which is written if it has changed; what keeps it from that is an error."""
        try:
            private_folder(self.path.parent)
            with locked(self.path.with_suffix(".lock")):
                self._read()
                before = dict(self._kept)
                yield
                if self._kept != before:
                    data = msgspec.json.format(msgspec.json.encode(_Record(trusted=self._kept)), indent=1)
                    write_atomically(self.path, data, durable=True)
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
            raise ConfigError(str(self.path), f"trust cannot be recorded: {problem}") from error
        except UnicodeEncodeError as error:
            problem = f"the name of `{error.object}` is not UTF-8; rename it"
            raise ConfigError(str(self.path), f"trust cannot be recorded: {problem}") from None


class _Record(msgspec.Struct):
    version: int = 1
    trusted: dict[str, _TrustedFile] = msgspec.field(default_factory=dict)


def _diff(before: str | None, now: str | None, name: str) -> str:
    import difflib

    if before is None or now is None:
        return f"{name}: too large or no text; only its hash is known to differ"
    old, new = before.splitlines(), now.splitlines()
    return "\n".join(difflib.unified_diff(old, new, f"{name} (trusted)", f"{name} (now)", lineterm=""))


def ensure(loaded: LoadedSettings, policy: Policy = "error", trust: Trust | None = None) -> LoadedSettings:
    """These settings, if their hooks may run; `UntrustedHooks` is raised if not.

    `policy` is `"error"`, `"all"` (run everything, record nothing) or a function that shows a `Status` and says whether
    to trust it from now on. A project's `env` and switches take no effect until they are trusted, too.
    """
    if policy == "all" or not any(file.source.foreign for file in loaded.files):
        return loaded
    trust = trust or Trust.load()
    status = trust.status(loaded)
    if status.trusted:
        return sealed(loaded, status.items)
    if callable(policy) and policy(status):
        trust.record(status.items)
        return sealed(loaded, status.items)
    if status.blocking:
        raise untrusted(status, loaded, trust)
    return _without(loaded, status)


def sealed(loaded: LoadedSettings, items: Iterable[Item]) -> LoadedSettings:
    """These settings, each trusted hook bound to the files it was trusted with: they are compared at every run."""
    seals, project = {}, str(loaded.places.project_dir)
    for item in items:
        known = {script.path: script.sha256 for script in item.scripts}
        for hook, named in item.named.items():
            seals[hook] = Seal(
                files=tuple((path, known[path]) for path in named.files if path in known),
                absent=tuple(path for path in named.watch if path not in known and path + os.sep not in known),
                listings=tuple((one, known[one.folder + os.sep]) for one in named.listings),
                roots=(item.root, project),
                project=project,
            )
    skills = tuple(msgspec.structs.replace(one, hooks=_bound(one.hooks, seals)) for one in loaded.skills)
    return msgspec.structs.replace(loaded, hooks=_bound(loaded.hooks, seals), skills=skills)


def with_current_seal(hook: Hook, loaded: LoadedSettings) -> Hook:
    """A hook that was added by hand, with the seal that the files have for it now."""
    if getattr(hook.action, "seal", None) is None:
        return hook
    fresh = (*loaded.hooks, *(one for skill in loaded.skills for one in skill.hooks))
    seals = {one.source: seal for one in fresh if (seal := getattr(one.action, "seal", None)) is not None}
    return _bound((hook,), seals)[0]


def _bound(hooks: Iterable[Hook], seals: Mapping[str, SealedFiles]) -> tuple[Hook, ...]:
    return tuple(
        msgspec.structs.replace(hook, action=msgspec.structs.replace(hook.action, seal=seals[hook.source]))
        if hook.source in seals and isinstance(hook.action, Command | Cedar | Rego)
        else hook
        for hook in hooks
    )


def untrusted(status: Status, loaded: LoadedSettings, trust: Trust) -> UntrustedHooks:
    """The error that names the files, the reason and the command to run."""
    items = [item for item in status.untrusted if item.runs]
    paths = {item.path for item in items}
    changes = [change for change in status.changes if change.item.path in paths]
    new = any(change.kind == "new" and change.path == change.item.path for change in changes)
    count = sum(len(item.runs) for item in items)
    not_yet = "is not trusted yet" if count == 1 else "are not trusted yet"
    listed = ", ".join(dict.fromkeys(loaded.places.label(change.path) for change in changes))
    which = not_yet if new else f"changed after being trusted ({listed})"
    damaged = f"; {trust.problems[0]}" if trust.problems else ""
    return UntrustedHooks(
        ", ".join(item.label for item in items),
        f"{count} hook{'' if count == 1 else 's'} that {which}, so nothing was run; run `hookline trust` to look and "
        f"decide, or pass `--trust` if you know what they do{damaged}",
    )


def _without(loaded: LoadedSettings, status: Status) -> LoadedSettings:
    """The settings without what is not trusted: `env`, switches, and hooks that would not run anyway."""
    paths = {item.path: item.label for item in status.untrusted}
    settled = merge_files(loaded.places, loaded.files, refused=paths)
    said = []
    for item in status.untrusted:
        keys = dict.fromkeys(f"`{line.partition(':')[0].partition('.')[0]}`" for line in item.sets)
        idle = f"{', '.join(keys) or 'its hooks'} take no effect until you run `hookline trust`"
        said.append(Problem(item.label, idle, "warning"))
    trusted = sealed(settled, (item for item in status.items if item.path not in paths))
    return msgspec.structs.replace(trusted, problems=(*loaded.problems, *said))
