"""A proof: the user's agent with the user's configuration, in a copy, trying what the hooks should refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hookline.errors import HooklineError
from hookline.hosts.host import Host
from hookline.hosts.install.apply import load_record
from hookline.hosts.install.entries import Scope, config_path
from hookline.hosts.install.installed import find_binary, older_than_measured
from hookline.hosts.install.survey import configured, scopes
from hookline.hosts.prove.checks import LoadHooks, static_problems
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
