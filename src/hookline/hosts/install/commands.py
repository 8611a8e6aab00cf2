"""`install` and `uninstall` as a program would call them: from a set of hooks to a host's files."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hookline.core.hooks.hook import Hook
from hookline.core.interpreter import SET_BY, entry_argv, shared_command, shared_program, shell_command
from hookline.errors import HooklineError
from hookline.events import CATALOG, spec_of
from hookline.guards.sandboxing import unavailable
from hookline.hosts.host import HookTrust, Host, unasked_subagents
from hookline.hosts.install import apply as files
from hookline.hosts.install import entries, jsonc, toml_edit
from hookline.hosts.install.apply import without_mark
from hookline.hosts.install.enforcement import Enforcement, own_timeout, report
from hookline.hosts.install.entries import HookSource, Scope, config_path, source_of
from hookline.hosts.install.servers import take_out as take_servers_out
from hookline.hosts.install.survey import configured


class HookHashes(NamedTuple):
    """The hashes of our entries, and how the host notes them: it may run a hook only once its hash is in its own file.

    Writing it there replaces the host's own question, so it is done on the user's explicit yes only, and for our own
    entries only.
    """

    host: Host
    trust: HookTrust

    @property
    def file(self) -> Path:
        return config_path(self.host, "user").with_name(self.trust.file)

    def of(self, hooks_file: Path, text: str) -> dict[str, str]:
        """The host's key and hash for each of our entries in its hook file."""
        content = jsonc.parse(without_mark(text)).value
        return self.trust.hashes(str(hooks_file), content, lambda command: entries.is_ours(command, self.host))

    def by_both_names(self, path: Path, text: str) -> dict[str, str]:
        """The hashes of a hook file as it was named, and as the host names it if it follows links there."""
        names = (path, Path(os.path.realpath(path.parent)) / path.name)
        return {key: value for name in names for key, value in self.of(name, text).items()}

    def noted(self, text: str, hashes: dict[str, str], old: dict[str, str]) -> str:
        """The host's file with our hashes, and without older ones of ours; everything else stays as it is."""
        for key in old.keys() - hashes.keys():
            if toml_edit.lookup(toml_edit.checked(text), self.trust.key(key)) == old[key]:
                text = toml_edit.remove_value(text, self.trust.key(key))
        for key, value in hashes.items():
            text = toml_edit.set_value(text, self.trust.key(key), value)
        return text

    def are_in(self, text: str, hashes: dict[str, str]) -> bool:
        """Whether the host will run all of our entries."""
        known = toml_edit.checked(without_mark(text))
        return all(value and toml_edit.lookup(known, self.trust.key(key)) == value for key, value in hashes.items())

    def known(self, path: Path, old: files.InstallRecord | None) -> dict[str, str]:
        """The hashes that we have noted for the entries in a hook file, also for those that are in it no more."""
        found: dict[str, str] = {}
        with suppress(OSError, UnicodeDecodeError, HooklineError):
            found = self.by_both_names(path, path.read_text())
        return {**found, **(old.trust if old else {})}


def hashes_for(host: Host) -> HookHashes | None:
    """The hashes of a host's hooks; nothing for one that runs every hook in its file."""
    return HookHashes(host, host.hook_trust) if host.hook_trust else None


def plan_trust(
    ours: HookHashes, change: files.FileChange, old: files.InstallRecord | None, *, agreed: bool
) -> tuple[list[files.FileChange], dict[str, str], str]:
    """The change of the host's own file that notes the hashes of our entries, if the user said yes; and what to say."""
    if not agreed:
        title = ours.host.title
        told = f"{title} skips these hooks until you trust them: run again with `--yes`, or use `/hooks` in {title}"
        return [], old.trust if old else {}, told
    text, path = change.after.decode(), ours.file
    hashes, before = ours.by_both_names(change.path, text), ours.known(change.path, old)
    edit = files.plan_edit(path, old, lambda text: ours.noted(text, {}, before),
                           lambda text: ours.noted(text, hashes, {}))  # fmt: skip
    count = len(ours.of(change.path, text))
    return [edit], hashes, f"trusted on your yes: {count} hash{'' if count == 1 else 'es'} in {path}"


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


def seconds_for(hooks: Iterable[Hook], observed: Collection[str] = (), hold: float = 0.0) -> dict[str, float]:
    """Our events that hooks listen to, with the time they may take: what a hook asks for itself, else the usual.

    What is `observed` comes besides: an audit log wants to be told even if no hook is asked.
    `hold` is how long a gate may wait for a person's answer.
    """
    wanted = {*observed, *(("SessionStart", "SessionEnd") if observed else ())}
    found: dict[str, float] = {name: entries.DEADLINE for name in CATALOG if name in wanted}
    for hook in hooks:
        own = own_timeout(hook)
        for event in hook.events:
            waits = hold if spec_of(event).gate else 0.0
            found[event.event_name] = max(found.get(event.event_name, entries.DEADLINE), waits, own + 1 if own else 0)
    return found


def install(
    host: Host, hooks: Iterable[Hook], source: HookSource, *, scope: Scope = "user", project: Path | None = None,
    observed: Collection[str] = (), trust: bool = False, replace: bool = False, allow_subagents: bool = False,
    hold: float = 0.0,
) -> InstallResult:  # fmt: skip
    """Write a host's configuration so that it asks these hooks; what is wrong with the old one is raised first."""
    hooks = list(hooks)
    if scope == "project" and not host.config.project:
        raise HooklineError(f"{host.title} has no hooks of a project; write `--scope user`")
    if scope == "local" and not host.config.local:
        raise HooklineError(f"{host.title} has no settings of your own in a project; leave out `--until-exit`")
    named, starter, root = source, program(), (project or Path.cwd()).resolve()
    can_share = scope == "project" and host.name in SET_BY and not host.config.expands
    shared = source.shared(root) if can_share else None
    if shared is not None:
        source, starter = shared, shared_command()
    if host.config.expands and "$" in program() + source.hooks + source.settings:
        path = source.hooks or source.settings or program()
        raise HooklineError(
            f"{host.title} replaces `$NAME` in commands and would not find `{path}`; choose a path without `$`"
        )
    seconds = seconds_for(hooks, observed, hold)
    if scope == "project" and host.config.replaces:
        seconds = {host.ours(event) or event: entries.DEADLINE for event, _ in configured(host, "user")} | seconds
    made = entries.entries(host, starter, source, seconds, scope=scope, subagents=allow_subagents, shared=bool(shared))
    if not made:
        raise HooklineError(f"{host.title} has none of the events that these hooks listen to; nothing to install")
    if not replace:
        _refuse_to_drop(host, source, scope, project)
    changes = files.plan(host, scope, made, project)
    record = files.InstallRecord(
        host=host.name, scope=scope, project=files.place(scope, project), hooks=source.hooks, settings=source.settings
    )
    reach = _reach(shared=bool(shared)) if scope == "project" else ""
    notes = list(filter(None, [reach, _on_subagents(host, allowed=allow_subagents), *host.notes]))
    hashes = hashes_for(host)
    if hashes:
        old = files.load_record(host.name, scope, record.project)
        more, record.trust, told = plan_trust(hashes, changes[0], old, agreed=trust)
        changes += more
        notes.insert(0, told)
    if scope == "project" and not host.config.replaces and entries.asks(host, made[0].event, source=named):
        told = "the user's own file asks the same hooks already: here they stay silent, nothing is judged twice"
        notes.insert(0, told)
    losses = tuple(report(hooks, host, unavailable(), inbox=hold > 0))
    events = tuple(dict.fromkeys(entry.event for entry in made))
    kept = files.apply(record, changes)
    return InstallResult(host, changes[0].path, events, tuple(kept), losses, tuple(notes))


def _on_subagents(host: Host, *, allowed: bool) -> str:
    """What to say of agents that the host starts; nothing if hooks hold in them, or it has no tool that starts one."""
    why = unasked_subagents(host)
    if not why or not any(tool.name == "Agent" for tool in host.tools.values()):
        return ""
    so = "nothing is judged there, as you allowed" if allowed else "starting one is denied; --allow-subagents allows it"
    return f"{why}: {so}"


def _reach(*, shared: bool) -> str:
    """On which machines a project's entries work, and what is missing for it on this one."""
    if not shared:
        return "these entries name folders of this machine and refuse every call on another: do not share the file"
    if shared_program():
        return "these entries hold for everyone who has Hookline in ~/.local/bin, /usr/local/bin or /usr/bin"
    return (
        "these entries look for Hookline in ~/.local/bin, /usr/local/bin and /usr/bin, where it is not yet, and "
        f"refuse every call until it is: run `pipx install hookline`, or `ln -s {entry_argv()[-1]} ~/.local/bin/`"
    )


def _refuse_to_drop(host: Host, source: HookSource, scope: Scope, project: Path | None) -> None:
    """Entries that ask other hooks would be replaced by ours: that takes the user's word."""
    others = dict.fromkeys(source_of(command) for _, command in configured(host, scope, project))
    kept = {*source.flags}
    dropped = [one.hooks or one.settings or one.audit or "the settings files" for one in others
               if one != source and not (one.flags and kept.issuperset(one.flags))]  # fmt: skip
    if dropped:
        raise HooklineError(
            f"{host.title} asks {' and '.join(f'`{name}`' for name in dropped)} already, which this would replace; "
            "import both in one Python file and install that with --replace, or uninstall first"
        )


def uninstall(host: Host, *, scope: Scope = "user", project: Path | None = None) -> list[Path]:
    """Take our entries out of a host's files; returns the files that changed."""
    more = {}
    hashes = hashes_for(host)
    if hashes:
        record = files.load_record(host.name, scope, files.place(scope, project))
        known = hashes.known(config_path(host, scope, project=project), record)
        more[hashes.file] = lambda text: hashes.noted(text, {}, known)
    servers = take_servers_out(host, scope, project)
    return list(dict.fromkeys([*servers, *files.uninstall(host, scope, project, more)]))
