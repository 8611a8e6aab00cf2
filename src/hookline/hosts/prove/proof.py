"""A proof: the user's agent with the user's configuration, in a copy, trying what the hooks should refuse."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hookline.core.hooks.hook import Hook
from hookline.errors import HooklineError
from hookline.hosts import subagents
from hookline.hosts.host import Host
from hookline.hosts.install.apply import load_record
from hookline.hosts.install.commands import HookHashes, hashes_for
from hookline.hosts.install.entries import HookSource, Scope, config_path, source_of
from hookline.hosts.install.survey import commands_in, configured, find_binary, older_than_measured, scopes
from hookline.hosts.prove.copies import copy_configuration, trusts
from hookline.hosts.prove.run import Workspace, folders
from hookline.hosts.prove.trial import Finding, Trial


class ProofResult(NamedTuple):
    """What a proof found out about one host."""

    host: Host
    version: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether everything that is configured is enforced."""
        return bool(self.findings) and all(finding.good for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As JSON says it."""
        findings = [finding._asdict() for finding in self.findings]
        return {"host": self.host.name, "version": self.version, "holds": self.holds,
                "seconds": round(self.seconds, 1), "findings": findings}  # fmt: skip


def prove(host: Host, project: Path, load: LoadHooks) -> ProofResult:
    """Run the user's own agent headless on a scripted model, and see what its hooks do."""
    agent, binary = host.proof, find_binary(host)
    if agent is None:
        return ProofResult(host, "", (Finding("binary", "cannot tell", f"{host.title} cannot be run headless here"),))
    if binary is None:
        names = " or ".join(f"`{name}`" for name in host.commands)
        return ProofResult(
            host, "", (Finding("binary", "missing", f"no {names} on PATH; install it, or leave it out"),)
        )
    problems = tuple(static_problems(host, project, load))
    entries = {scope: tuple(dict.fromkeys(event for event, _ in configured(host, scope, project)))
               for scope in scopes(host, project)}  # fmt: skip
    if not any(entries.values()):
        return ProofResult(host, binary.version, problems or (_nothing(host, project),))
    with folders() as (home, place):
        try:
            copy_configuration(host, agent, home, project, place)
        except HooklineError as error:
            told = (Finding("configuration", "broken", f"a file of {host.title} cannot be read: {error}"),)
            return ProofResult(host, binary.version, problems + told)
        problems += tuple(_not_trusted(host, home, project) if entries.get("project") else ())
        tried = Trial(host, agent, Workspace(binary, home, place), _asked(host, entries))
        named = {problem.what for problem in problems}
        found = tuple(finding for finding in tried.findings() if finding.good or finding.what not in named)
    return ProofResult(host, binary.version, _with_version(host, binary.version, problems + found), tried.seconds)


def _asked(host: Host, entries: Mapping[Scope, tuple[str, ...]]) -> dict[Scope, tuple[str, ...]]:
    """The events that each file has the host ask about; the user's is not read where a project's takes its place."""
    replaced = host.config.replaces and entries.get("project")
    return {scope: events for scope, events in entries.items() if events and not (replaced and scope == "user")}


def _not_trusted(host: Host, home: Path, project: Path) -> Iterator[Finding]:
    """A project whose hooks the agent skips, without a word, until the user has trusted the folder."""
    store = host.proof.trust if host.proof else None
    if store is not None and not trusts(store, home, project):
        path = config_path(host, "project", project=project)
        yield Finding("trust", "silent", f"{path}: {host.title} skips the hooks of a folder until it is trusted")


def _with_version(host: Host, version: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings, after the likely cause if something does not hold and the agent is an old one."""
    told = older_than_measured(host, version)
    if not told or all(finding.good for finding in findings):
        return findings
    return (Finding("version", "too old", told), *findings)


def _nothing(host: Host, project: Path) -> Finding:
    for scope in scopes(host, project):
        record = load_record(host.name, scope, str(project) if scope == "project" else "")
        if record is not None:
            where = config_path(host, scope, project=project)
            return Finding("configuration", "silent", f"{where} has no entry of ours any more; install again")
    return Finding("configuration", "silent", f"not hooked: run `hookline install {host.name} --hooks FILE.py`")


# -- what is wrong with a host's files, before anything runs ----------------------------------------------------------


LoadHooks = Callable[[HookSource], Iterable[Hook]]
"""Loads the hooks that an entry asks; raises a `HooklineError` if it cannot."""


def static_problems(host: Host, project: Path, load: LoadHooks) -> Iterator[Finding]:
    """A program that is not there is never asked; nor is a hook whose event has no entry."""
    skipped: set[str] = set()
    for scope, finding in _untrusted(ours, project) if (ours := hashes_for(host)) else ():
        skipped.add(scope)
        yield finding
    for scope in scopes(host, project):
        path = config_path(host, scope, project=project)
        for event, program in missing_programs(host, path):
            yield Finding(event, "silent", f"{path}: `{program}` does not exist, so this hook is never asked")
        found = [(event, command, source_of(command, project)) for event, command in configured(host, scope, project)]
        yield from _entries(host, path, found, load, skipped=scope in skipped)


def _entries(
    host: Host, path: Path, entries: list[tuple[str, str, HookSource]], load: LoadHooks, *, skipped: bool
) -> Iterator[Finding]:
    """What our entries in one file ask for, beside what their hooks listen to."""
    by_source: dict[HookSource, set[str]] = {}
    for event, command, source in entries:
        by_source.setdefault(source, set()).add(event)
        yield from _entry(host, path, event, command, source, skipped=skipped)
    for source, events in by_source.items():
        file = source.hooks or source.settings
        if file and not Path(file).is_file():
            continue  # said of each of its entries
        try:
            wanted = {hook_event.event_name for hook in load(source) for hook_event in hook.events}
        except HooklineError as error:
            yield Finding("hooks", "broken", f"{error}; every call is denied")
            continue
        for event in dict.fromkeys(theirs for ours in sorted(wanted) for theirs in host.native_events(ours)):
            if event not in events:
                told = f"{path}: a hook of `{file or 'the settings files'}` listens to it, and it is not configured"
                yield Finding(event, "silent", f"{told}; install again")


def _entry(host: Host, path: Path, event: str, command: str, source: HookSource, *, skipped: bool) -> Iterator[Finding]:
    file = source.hooks or source.settings
    if file and not Path(file).is_file():
        so = "and is not asked for either" if skipped else "so every call is denied"
        yield Finding(event, "broken", f"{path}: `{file}` does not exist, {so}")
    if host.ours(event) is None:
        yield Finding(event, "silent", f"{path}: {host.title} has no such event, so this entry is never asked")
    elif (asked := _flag(command, "--event")) and host.ours(asked) != host.ours(event):
        yield Finding(event, "broken", f"{path}: its command asks about `{asked}`; install again")
    if (why := subagents.problem(host)) and _flag(command, "--subagents") == subagents.ALLOW:
        yield Finding("subagents", "silent", f"{why}, and --allow-subagents was given")


def _flag(command: str, name: str) -> str:
    try:
        return dict(pairwise(shlex.split(command))).get(name, "")
    except ValueError:  # an entry that was edited
        return ""


def _untrusted(ours: HookHashes, project: Path) -> Iterator[tuple[Scope | str, Finding]]:
    """The hooks whose hash is not noted: the host skips them without a word."""
    host, config = ours.host, ours.file
    try:
        known = config.read_text() if config.exists() else ""
        for scope in scopes(host, project):
            path = config_path(host, scope, project=project)
            hashes = ours.of(path, path.read_text()) if path.is_file() else {}
            if not ours.are_in(known, hashes):
                told = f"{path}: {host.title} skips hooks that are not trusted; install with --yes"
                yield scope, Finding("trust", "silent", told)
    except (HooklineError, OSError, UnicodeDecodeError) as error:
        yield "", Finding("configuration", "broken", f"{config}: {error}")


# -- programs that are not there --------------------------------------------------------------------------------------

_SHELL_WORDS = frozenset("if for while case { ( ! [ [[ . source exec cd test export set eval".split())  # noqa: SIM905


def missing_programs(host: Host, path: Path) -> Iterator[tuple[str, str]]:
    """Each command of a hook file, ours or not, whose program cannot be found: the event and the program."""
    for event, command in commands_in(host, path):
        program = _program(command)
        if program and not _there(program):
            yield event, program


def _program(command: str) -> str:
    """The first word of a plain command; nothing where the shell has more to say about it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    while words and "=" in words[0] and words[0].split("=")[0].isidentifier():
        words.pop(0)
    first = words[0] if words else ""
    return "" if not first or first in _SHELL_WORDS or any(sign in first for sign in "$`*?(){}<>|&;~") else first


def _there(program: str) -> bool:
    if "/" in program:
        return not Path(program).is_absolute() or os.access(program, os.X_OK)
    return shutil.which(program) is not None
