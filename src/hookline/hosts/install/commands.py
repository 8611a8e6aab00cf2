"""`install` and `uninstall` as a program would call them: from a set of hooks to a host's files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hookline.core.hooks.hook import Hook
from hookline.core.interpreter import entry_argv, shell_command
from hookline.errors import HooklineError
from hookline.guards.sandboxing import unavailable
from hookline.hosts import subagents
from hookline.hosts.host import Host
from hookline.hosts.install import apply as files
from hookline.hosts.install.codex_trust import hashes_of, with_trust
from hookline.hosts.install.enforcement import Enforcement, own_timeout, report
from hookline.hosts.install.entries import (
    DEADLINE,
    CommandTemplate,
    HookSource,
    Scope,
    asks,
    config_path,
    entries,
    source_of,
)
from hookline.hosts.install.survey import configured


class InstallResult(NamedTuple):
    """What an installation did."""

    host: Host
    path: Path
    events: tuple[str, ...]
    backups: tuple[Path, ...]
    losses: tuple[Enforcement, ...]
    notes: tuple[str, ...]


def program() -> str:
    """The command that runs this Hookline from anywhere, whatever the environment says there."""
    return shell_command(entry_argv())


def seconds_for(hooks: Iterable[Hook]) -> dict[str, float]:
    """Our events that hooks listen to, with the time they may take: what a hook asks for itself, else the usual."""
    found: dict[str, float] = {}
    for hook in hooks:
        own = own_timeout(hook)
        for event in hook.events:
            found[event.event_name] = max(found.get(event.event_name, DEADLINE), own + 1 if own else 0)
    return found


def install(
    host: Host, hooks: Iterable[Hook], source: HookSource, *, scope: Scope = "user", project: Path | None = None,
    trust: bool = False, replace: bool = False, allow_subagents: bool = False,
) -> InstallResult:  # fmt: skip
    """Write a host's configuration so that it asks these hooks; what is wrong with the old one is raised first."""
    hooks = list(hooks)
    if scope == "project" and not host.config.project:
        raise HooklineError(f"{host.title} has no hooks of a project; write `--scope user`")
    if scope == "local" and not host.config.local:
        raise HooklineError(f"{host.title} has no settings of your own in a project; leave out `--until-exit`")
    if host.config.expands and "$" in program() + source.hooks + source.settings:
        named = source.hooks or source.settings or program()
        raise HooklineError(
            f"{host.title} replaces `$NAME` in commands and would not find `{named}`; choose a path without `$`"
        )
    seconds = seconds_for(hooks)
    if scope == "project" and host.config.replaces:
        seconds = {host.ours(event) or event: DEADLINE for event, _ in configured(host, "user")} | seconds
    made = entries(CommandTemplate(host, program(), source, scope, allow_subagents), seconds)
    if not made:
        raise HooklineError(f"{host.title} has none of the events that these hooks listen to; nothing to install")
    if not replace:
        _refuse_to_drop(host, source, scope, project)
    changes = files.plan(host, scope, made, project)
    record = files.InstallRecord(
        host=host.name, scope=scope, project=files.place(scope, project), hooks=source.hooks, settings=source.settings
    )
    notes = list(filter(None, [subagents.note(host, allowed=allow_subagents), *host.notes]))
    if host.name == "codex":
        more, record.trust, told = _trust_codex(
            changes[0], files.load_record(host.name, scope, record.project), trust=trust
        )
        changes += more
        notes.insert(0, told)
    if (
        scope == "project"
        and not host.config.replaces
        and asks(host, made[0].event, hooks=source.hooks, settings=source.settings)
    ):
        notes.insert(
            0, "the user's own file asks the same hooks already: here they stay silent, nothing is judged twice"
        )
    losses = tuple(report(hooks, host, unavailable()))
    events = tuple(dict.fromkeys(entry.event for entry in made))
    kept = files.apply(record, changes)
    return InstallResult(host, changes[0].path, events, tuple(kept), losses, tuple(notes))


def _refuse_to_drop(host: Host, source: HookSource, scope: Scope, project: Path | None) -> None:
    """Entries that ask other hooks would be replaced by ours: that takes the user's word."""
    others = dict.fromkeys(source_of(command) for _, command in configured(host, scope, project))
    dropped = [one.hooks or one.settings or "the settings files" for one in others if one != source]
    if dropped:
        raise HooklineError(
            f"{host.title} asks {' and '.join(f'`{name}`' for name in dropped)} already, which this would replace; "
            "import both in one Python file and install that with --replace, or uninstall first"
        )


def _trust_codex(
    change: files.FileChange, old: files.InstallRecord | None, *, trust: bool
) -> tuple[list[files.FileChange], dict[str, str], str]:
    """The change of Codex's own file that notes the hashes of our entries, if the user said yes; and what to say."""
    if not trust:
        untrusted = "Codex skips these hooks until you trust them: run again with `--yes`, or use `/hooks` in Codex"
        return [], old.trust if old else {}, untrusted
    text = change.after.decode()
    hashes = {key: value for name in _both_names(change.path) for key, value in hashes_of(name, text).items()}
    path, before = _codex_config(), _known_hashes(change.path, old)
    edit = files.plan_edit(
        path, old, lambda text: with_trust(text, {}, before), lambda text: with_trust(text, hashes, {})
    )
    count = len(hashes_of(change.path, text))
    return [edit], hashes, f"trusted on your yes: {count} hash{'' if count == 1 else 'es'} in {path}"


def _known_hashes(path: Path, old: files.InstallRecord | None) -> dict[str, str]:
    """The hashes that we have noted for the entries in a hook file, also for those that are in it no more."""
    found: dict[str, str] = {}
    with suppress(OSError, UnicodeDecodeError, HooklineError):
        text = path.read_text()
        found = {key: value for name in _both_names(path) for key, value in hashes_of(name, text).items()}
    return {**found, **(old.trust if old else {})}


def _both_names(path: Path) -> tuple[Path, Path]:
    """A hook file as it was named, and as Codex names it if CODEX_HOME is set: it follows links there."""
    return path, Path(os.path.realpath(path.parent)) / path.name


def _codex_config() -> Path:
    from hookline.hosts.codex import CODEX

    return config_path(CODEX, "user").with_name("config.toml")


def uninstall(host: Host, *, scope: Scope = "user", project: Path | None = None) -> list[Path]:
    """Take our entries out of a host's files; returns the files that changed."""
    more = {}
    if host.name == "codex":
        record = files.load_record(host.name, scope, files.place(scope, project))
        known = _known_hashes(config_path(host, scope, project=project), record)
        more[_codex_config()] = lambda text: with_trust(text, {}, known)
    return files.uninstall(host, scope, project, more)
