"""`install` and `uninstall` as a program would call them: from a set of hooks to a host's files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from hookline.core.files import write_atomically
from hookline.core.hooks.hook import Hook
from hookline.errors import ConfigError, HooklineError
from hookline.guards.sandboxing import unavailable
from hookline.hosts.host import Host
from hookline.hosts.install import apply as files
from hookline.hosts.install import codex_trust, toml_block
from hookline.hosts.install.enforcement import Enforcement, report
from hookline.hosts.install.entries import DEADLINE, CommandTemplate, HookSource, Scope, asks, config_path, entries
from hookline.hosts.install.survey import configured

_UNSAID = 600.0
"""What entries of settings files get that say nothing of a timeout: no agent waits that long for a tool call."""


class InstallResult(NamedTuple):
    """What an installation did."""

    host: Host
    path: Path
    events: tuple[str, ...]
    backups: tuple[Path, ...]
    losses: tuple[Enforcement, ...]
    notes: tuple[str, ...]


def program() -> str:
    """The command that runs this Hookline from anywhere, whatever PATH says there."""
    beside = Path(sys.executable).with_name("hookline")
    given = Path(sys.argv[0])
    for path in (given if given.name == "hookline" else beside, beside):
        found = path if path.is_absolute() else Path(shutil.which(path) or path.absolute())
        if found.is_file() and os.access(found, os.X_OK):
            return quote(str(found))
    return f"{quote(sys.executable)} -P -m hookline"


def seconds_for(hooks: Iterable[Hook], longest: float = 590.0) -> dict[str, float]:
    """Our events that hooks listen to, with the time they may take: what a hook asks for itself, else the usual."""
    found: dict[str, float] = {}
    for hook in hooks:
        own = 0.0 if hook.timeout in (None, _UNSAID) else hook.timeout or 0.0
        for event in hook.events:
            found[event.event_name] = min(max(found.get(event.event_name, DEADLINE), own + 1 if own else 0), longest)
    return found


def install(
    host: Host, hooks: Iterable[Hook], source: HookSource, *, scope: Scope = "user", project: Path | None = None,
    trust: bool = False,
) -> InstallResult:  # fmt: skip
    """Write a host's configuration so that it asks these hooks; what is wrong with the old one is raised first."""
    hooks = list(hooks)
    if scope == "project" and not host.config.project:
        raise HooklineError(f"{host.title} has no hooks of a project; write `--scope user`")
    if host.config.expands and "$" in program() + source.hooks + source.settings:
        named = source.hooks or source.settings or program()
        raise HooklineError(
            f"{host.title} replaces `$NAME` in commands and would not find `{named}`; choose a path without `$`"
        )
    seconds = seconds_for(hooks)
    if scope == "project" and host.config.replaces:
        seconds = {host.ours(event) or event: DEADLINE for event, _ in configured(host, "user")} | seconds
    made = entries(CommandTemplate(host, program(), source, scope), seconds)
    if not made:
        raise HooklineError(f"{host.title} has none of the events that these hooks listen to; nothing to install")
    changes = files.plan(host, scope, made, project)
    record = files.InstallRecord(
        host=host.name, scope=scope, project=files.place(scope, project), hooks=source.hooks, settings=source.settings
    )
    kept = files.apply(record, changes)
    notes = list(host.notes)
    if host.name == "codex":
        notes.insert(0, _trust_codex(changes[0], trust=trust))
    if (
        scope == "project"
        and not host.config.replaces
        and asks(host, made[0].event, hooks=source.hooks, settings=source.settings)
    ):
        notes.insert(
            0, "the user's own file asks the same hooks already: here they stay silent, nothing is judged twice"
        )
    losses = tuple(report(hooks, host, unavailable()))
    path = changes[0].path
    events = tuple(dict.fromkeys(entry.event for entry in made))
    return InstallResult(host, path, events, tuple(kept), losses, tuple(notes))


def _trust_codex(change: files.FileChange, *, trust: bool) -> str:
    """Note the hashes of our entries, if the user said yes."""
    if not trust:
        return "Codex skips these hooks until you trust them: run again with `--yes`, or use `/hooks` in Codex"
    text = change.after.decode()
    hashes = codex_trust.trusted(change.path, text)
    names = _both_names(change.path)
    noted = {key: value for name in names for key, value in codex_trust.trusted(name, text).items()}
    path = _codex_config()
    try:
        before = path.read_text() if path.exists() else ""
        path.parent.mkdir(parents=True, exist_ok=True)
        files.check_writable(path)
        write_atomically(path, codex_trust.with_trust(before, names, noted).encode())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"cannot be written: {error}") from None
    except ConfigError:
        raise
    except HooklineError as error:
        raise ConfigError(str(path), f"{error}; fix it first: Codex cannot read it either") from None
    return f"trusted on your yes: {len(hashes)} hash{'' if len(hashes) == 1 else 'es'} in {path}"


def _both_names(path: Path) -> tuple[Path, Path]:
    """A hook file as it was named, and as Codex names it if CODEX_HOME is set: it follows links there."""
    return path, Path(os.path.realpath(path.parent)) / path.name


def _codex_config() -> Path:
    from hookline.hosts.codex import CODEX

    return config_path(CODEX, "user").with_name("config.toml")


def uninstall(host: Host, *, scope: Scope = "user", project: Path | None = None) -> list[Path]:
    """Take our entries out of a host's files; returns the files that changed."""
    touched = files.uninstall(host, scope, project)
    if host.name == "codex":
        path = _codex_config()
        if path.exists() and toml_block.block_of(text := path.read_text()):
            rest = codex_trust.with_trust(text, _both_names(config_path(host, scope, project=project)), {})
            if rest.strip():
                write_atomically(path, rest.encode())
            else:
                path.unlink()
            touched.append(path)
    return touched
