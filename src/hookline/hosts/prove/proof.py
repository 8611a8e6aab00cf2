"""A proof: the user's agent with the user's configuration, in a copy, trying what the hooks should refuse."""

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

from hookline.core.hooks.hook import Hook
from hookline.errors import HooklineError
from hookline.events import spec_of
from hookline.hosts.decode import unknown_offers
from hookline.hosts.host import ALLOW, Host, ProofRecipe, able, unasked_subagents
from hookline.hosts.install import jsonc
from hookline.hosts.install.apply import load_record
from hookline.hosts.install.commands import HookHashes, hashes_for
from hookline.hosts.install.entries import HookSource, Scope, config_path, flags_of, source_of
from hookline.hosts.install.survey import commands_in, configured, find_binary, older_than_measured, scopes
from hookline.hosts.prove import canary
from hookline.hosts.prove.model import ModelTurn
from hookline.hosts.prove.run import ProgramRun, Workspace, copy_configuration, folders, run, trusts

LoadHooks = Callable[[HookSource], Iterable[Hook]]
"""Loads the hooks that an entry asks; raises a `HooklineError` if it cannot."""


class Finding(NamedTuple):
    """One line of a proof: what was tried or looked at, and what came of it."""

    what: str
    status: str
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether it holds, or is nothing that a proof must show; a gate that was not tried is `not proven`."""
        return self.status in ("enforced", "fired", "not tried")


class ProofResult(NamedTuple):
    """What a proof found out about one host."""

    host: Host
    version: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return bool(self.findings) and all(finding.good for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        findings = [finding._asdict() for finding in self.findings]
        return {"host": self.host.name, "version": self.version, "holds": self.holds,
                "seconds": round(self.seconds, 1), "findings": findings}  # fmt: skip


def prove(host: Host, project: Path, load: LoadHooks) -> ProofResult:
    """Run the user's own agent headless on a scripted model, and see what its hooks do."""
    agent, binary = host.proof, find_binary(host)
    if agent is None:
        return ProofResult(host, "", (Finding("binary", "cannot tell", f"{host.title} cannot be run headless here"),))
    if binary is None:
        missing = f"no `{host.executable}` on PATH; install it, or leave it out"
        return ProofResult(host, "", (Finding("binary", "missing", missing),))
    found = list(static_problems(host, project, load))
    entries = {scope: tuple(dict.fromkeys(event for event, _ in configured(host, scope, project)))
               for scope in scopes(host, project)}  # fmt: skip
    if not any(entries.values()):
        return ProofResult(host, binary.version, tuple(found) or (_nothing(host, project),))
    with folders() as (home, place):
        try:
            copy_configuration(host, agent, home, project, place)
        except HooklineError as error:
            found.append(Finding("configuration", "broken", f"a file of {host.title} cannot be read: {error}"))
            return ProofResult(host, binary.version, tuple(found))
        if entries.get("project") and agent.trust and not trusts(agent.trust, home, project):
            path = config_path(host, "project", project=project)
            told = f"{path}: {host.title} skips the hooks of a folder until it is trusted"
            found.append(Finding("trust", "silent", told))
        # the user's file is not read where a project's takes its place
        replaced = host.config.replaces and entries.get("project")
        asked = {scope: events for scope, events in entries.items() if events and not (replaced and scope == "user")}
        tried = Trial(host, agent, Workspace(binary, home, place), asked)
        named = {problem.what for problem in found}
        found += [finding for finding in tried.findings() if finding.good or finding.what not in named]
    old = older_than_measured(host, binary.version)
    if old and not all(finding.good for finding in found):  # the likely cause
        found.insert(0, Finding("version", "too old", old))
    return ProofResult(host, binary.version, tuple(found), tried.seconds)


def _nothing(host: Host, project: Path) -> Finding:
    for scope in scopes(host, project):
        if load_record(host.name, scope, str(project) if scope == "project" else "") is not None:
            where = config_path(host, scope, project=project)
            return Finding("configuration", "silent", f"{where} has no entry of ours any more; install again")
    return Finding("configuration", "silent", f"not hooked: run `hookline install {host.name} --hooks FILE.py`")


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
    file, flags = source.hooks or source.settings, flags_of(command)
    if file and not Path(file).is_file():
        so = "and is not asked for either" if skipped else "so every call is denied"
        yield Finding(event, "broken", f"{path}: `{file}` does not exist, {so}")
    if host.ours(event) is None:
        yield Finding(event, "silent", f"{path}: {host.title} has no such event, so this entry is never asked")
    elif (asked := flags.get("--event")) and host.ours(asked) != host.ours(event):
        yield Finding(event, "broken", f"{path}: its command asks about `{asked}`; install again")
    if (why := unasked_subagents(host)) and flags.get("--subagents") == ALLOW:
        yield Finding("subagents", "silent", f"{why}, and --allow-subagents was given")


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


_SHELL_WORDS = frozenset("if for while case { ( ! [ [[ . source exec cd test export set eval".split())  # noqa: SIM905


def missing_programs(host: Host, path: Path) -> Iterator[tuple[str, str]]:
    """Each command of a hook file, ours or not, whose program cannot be found: the event and the program."""
    for event, command in commands_in(host, path):
        program = _program(command)
        found = os.access(program, os.X_OK) or not Path(program).is_absolute() if "/" in program else which(program)
        if program and not found:
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
    return "" if first in _SHELL_WORDS or any(sign in first for sign in "$`*?(){}<>|&;~") else first


_SERVICE = "HOOKLINE_SERVICE"


@dataclass
class Trial:
    """The runs of one agent, and what was seen."""

    host: Host
    agent: ProofRecipe
    place: Workspace
    events: Mapping[Scope, tuple[str, ...]]
    seconds: float = 0.0

    @property
    def _notes(self) -> Path:
        return self.place.home / "hookline-proof.jsonl"

    def findings(self) -> Iterator[Finding]:
        self._notes.write_bytes(canary.HEADER)
        ours = {self.host.ours(event) for found in self.events.values() for event in found}
        kinds = ["allow", "deny", "hang", "crash", "exit"] if "PreToolUse" in ours else ["allow"]
        if "PreToolUse" in ours and able(self.host, "rewrite"):
            kinds.insert(2, "rewrite")
        calls = [self.agent.bash(f"touch {self.place.project}/{canary.TOKEN}-{kind}") for kind in kinds]
        # a file is written, too: an entry may be asked about commands alone; whether it is refused is the hooks'
        calls.append(self.agent.write(str(self.place.project / f"{canary.TOKEN}-write")))
        done = self._run("please run the canaries", [ModelTurn(tools=(call,)) for call in calls])
        if not done.model.turns_asked:
            lines = [line.strip() for line in f"{done.stderr}\n{done.stdout}".splitlines() if line.strip()]
            how = "it hung" if done.exit_code is None else f"exit code {done.exit_code}"
            told = f"{how}; {lines[-1][:200]}" if lines else how
            yield Finding("agent", "cannot tell", f"{self.host.title} did not reach the model: {told}")
            return
        notes = [json.loads(line) for line in self._notes.read_text().splitlines()[1:]]
        yield from self._fired(notes)
        if "PreToolUse" in ours:
            yield from (self._call(kind, done, notes) for kind in kinds)
            asked = any(note.get("canary") == "write" for note in notes)
            ran = "silent", "and the hooks were not asked"
            unasked = ran if canary.ran("write", self.place.project) else ("not proven", "the agent did not try to")
            yield Finding("a file is written", *(("fired",) if asked else unasked))
        path = self.place.home / self.agent.servers  # has the servers that cannot be told from its own tools
        found = jsonc.lookup(jsonc.parse(path.read_text()), ("mcp",)) if path.is_file() else None
        told = f"{self.host.title} offers it, and Hookline does not know what it does: only its input is judged"
        for name in unknown_offers(self.host, done.model.tools, found.members if found else ()):
            yield Finding(f"tool {name}", "unknown", told)
        if "UserPromptSubmit" in ours:
            yield self._prompt_gate()
        yield from _hooks_asked(notes)

    def _run(self, prompt: str, turns: list[ModelTurn]) -> ProgramRun:
        env = {canary.VARIABLE: str(self._notes)}
        if _SERVICE in os.environ:  # whoever answers the user's agent answers here
            env[_SERVICE] = os.environ[_SERVICE]
        done = run(self.agent, self.place, prompt, turns, env=env, limit=180)
        self.seconds += done.seconds
        return done

    def _fired(self, notes: list[dict[str, Any]]) -> Iterator[Finding]:
        """Whether each file's entries were asked; the user's and a project's are asked one by one."""
        seen = {(note["asked_for"], note["scope"]) for note in notes if "asked_for" in note}
        for scope, events in self.events.items():
            for event in events:
                ours = self.host.ours(event)
                what = f"{event} (project)" if scope == "project" and len(self.events) > 1 else event
                if (event, scope) in seen:
                    yield Finding(what, "fired")
                elif ours in _ALWAYS:
                    yield Finding(what, "silent", f"it is configured, and {self.host.title} never asked")
                elif ours is None or spec_of(ours).gate:
                    yield Finding(what, "not proven", "nothing in a proof causes it, and it is a gate")
                else:
                    yield Finding(what, "not tried", "nothing in a proof causes it")

    def _call(self, kind: str, done: ProgramRun, notes: list[dict[str, Any]]) -> Finding:
        what, folder = _WORDS[kind], self.place.project
        if not any(note.get("canary") == kind for note in notes):
            if canary.ran(kind, folder):
                return Finding(what, "silent", "the call ran, and the hooks were not asked")
            return Finding(what, "broken", "the call was refused, but the hooks were not asked")
        expected = {"allow": "allow", "rewrite": "rewritten"}.get(kind)
        if expected and canary.ran(expected, folder):
            return Finding(what, "enforced", "the call ran" if kind == "allow" else "the new call ran instead")
        if canary.ran(kind, folder):
            return Finding(what, "silent", "the call ran as it was")
        deciders = [note["decided_by"] for note in notes if note.get("kind") == kind and note.get("decided_by")]
        if by := next((name for name in deciders if canary.NAME not in name), ""):  # the user's own, before ours
            return Finding(what, "enforced", f"refused by your hook `{by}`")
        if expected:
            return Finding(what, "broken", "it did not run")
        told = done.model.read(canary.REASON if kind == "deny" else "fails closed")
        return Finding(what, "enforced", "refused; the model read why" if told else "refused")

    def _prompt_gate(self) -> Finding:
        if not able(self.host, "gate prompt"):
            return Finding("prompt gate", "silent", f"{self.host.title} cannot refuse a prompt")
        kept = self._run(f"{canary.TOKEN}-deny", []).model.turns_asked == 0
        status, told = ("enforced", "the model never saw it") if kept else ("silent", "it went through")
        return Finding("prompt gate", status, told)


_WORDS = {"allow": "allow", "deny": "deny", "rewrite": "rewrite", "hang": "a hook hangs", "crash": "a hook crashes",
          "exit": "a hook exits"}  # fmt: skip
_ALWAYS = frozenset({"PreToolUse", "UserPromptSubmit"})


def _hooks_asked(notes: list[dict[str, Any]]) -> Iterator[Finding]:
    """The user's own hooks that were asked, and on which events."""
    known = {name: matcher for note in notes for name, matcher in note.get("hooks", {}).items()}
    gates = {name for note in notes for name in note.get("gates", ())}
    failed = {name: error for note in notes for name, error in note.get("failed", {}).items()}
    found: dict[str, dict[str, None]] = {}  # each hook's events, in their order
    for note in notes:
        for name in note.get("asked", ()):
            if not name.startswith(canary.NAME):
                found.setdefault(name, {})[note["event"]] = None
    for name, events in found.items():
        broken = f"; it failed: {failed[name]}" if name in failed else ""
        yield Finding(f"hook {name}", "broken" if broken else "fired", f"on {', '.join(events)}{broken}")
    for name in known.keys() - found.keys():
        status = "not proven" if name in gates else "not tried"
        yield Finding(f"hook {name}", status, f"nothing in a proof matches `{known[name]}`")
