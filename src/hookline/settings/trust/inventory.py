"""What of a project's files needs trust: what they say, what they run, and what cannot be told of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from hookline.core.hooks.actions import Cedar, Command, Function, Http, McpTool, Prompt, Rego
from hookline.core.hooks.hook import Hook
from hookline.core.hooks.signature import name_of
from hookline.settings.files import HookScript, pretty, read_script
from hookline.settings.load import LoadedSettings
from hookline.settings.parse import parse_hooks
from hookline.settings.policy import File, sensitive
from hookline.settings.trust.code_imports import Listing
from hookline.settings.trust.scripts import ExecutedFiles, files_run_by


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
    found: dict[str, Item] = {}
    for file in loaded.files:
        if file.source.foreign and sensitive(file.raw):
            item = _item(file, loaded)
            other = found.get(item.path)
            found[item.path] = item if other is None else _together(other, item)
    return tuple(found.values())


def _item(file: File, loaded: LoadedSettings) -> Item:
    source = file.source
    hooks = parse_hooks(file.raw.get("hooks", {}), source).hooks
    kept = sensitive(file.raw)
    runs = hooks if loaded.switches.allows(source) else ()
    project = str(loaded.places.project_dir)
    env = dict(loaded.env)
    named = {hook.source: files_run_by(hook.action, (source.root, project), project, env) for hook in hooks}
    named |= {name: files_run_by(action, (source.root, project), project) for name, action in _servers(file)}
    named = _same_listings(named)
    return Item(
        path=source.path,
        label=source.label,
        root=source.root,
        definitions=pretty(kept),
        runs=tuple(dict.fromkeys(f"{event_of(hook)}: {what_runs(hook)}" for hook in runs)),
        sets=tuple(stated(kept)),
        notes=tuple(dict.fromkeys(note for one in named.values() for note in one.notes)),
        scripts=_scripts(named.values()),
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
    wanted: dict[str, set[str] | None] = {}
    code = {listing.folder for one in named.values() for listing in one.listings if listing.code}
    for listing in (listing for one in named.values() for listing in one.listings):
        before = wanted.get(listing.folder, set())
        wanted[listing.folder] = None if before is None or not listing.names else before | set(listing.names)
    merged = {
        folder: Listing(folder, tuple(sorted(names or ())), code=folder in code) for folder, names in wanted.items()
    }
    return {
        hook: msgspec.structs.replace(one, listings=tuple(dict.fromkeys(merged[each.folder] for each in one.listings)))
        for hook, one in named.items()
    }


def _scripts(named: Iterable[ExecutedFiles]) -> tuple[HookScript, ...]:
    named = tuple(named)
    paths = sorted({path for one in named for path in one.files})
    listings = sorted({one for each in named for one in each.listings}, key=lambda one: (one.folder, one.names))
    found = [script for path in paths if (script := read_script(path)) is not None]
    return (*found, *(one.read() for one in listings))


def _together(a: Item, b: Item) -> Item:
    """Two readings of one file (a plugin.json that holds several tables)."""
    scripts = {one.path: one for one in (*a.scripts, *b.scripts)}
    return msgspec.structs.replace(
        a, definitions=f"{a.definitions}\n{b.definitions}", runs=(*a.runs, *b.runs), named={**a.named, **b.named},
        sets=(*a.sets, *b.sets), notes=(*a.notes, *b.notes),
        scripts=tuple(scripts[path] for path in sorted(scripts)),
    )  # fmt: skip


def stated(kept: Mapping[str, Any]) -> Iterator[str]:
    """What a file says besides its hooks, one line each."""
    for key, value in kept.items():
        if key == "hooks":
            continue
        if key in _EACH and isinstance(value, dict):
            for name, entry in value.items():
                yield from (f"{key}.{name}: {_brief(one)}" for one in (entry if isinstance(entry, list) else [entry]))
        elif isinstance(value, list):
            yield from (f"{key}: {_brief(one)}" for one in value)
        else:
            yield f"{key}: {_brief(value)}"


_EACH = ("env", "permissions", "mcpServers", "enabledPlugins", "extraKnownMarketplaces", "sandbox")


def _brief(value: Any) -> str:
    return value if isinstance(value, str) else pretty(value, indent=0)


def event_of(hook: Hook) -> str:
    """The names of a hook's events."""
    return ", ".join(cls.event_name for cls in hook.events)


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
