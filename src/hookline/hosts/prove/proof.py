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
from hookline.hosts.prove.agents import AGENTS
from hookline.hosts.prove.checks import LoadHooks, static_problems
from hookline.hosts.prove.copies import STORES, copy_configuration
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
    agent, binary = AGENTS.get(host.name), find_binary(host)
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
    store = STORES.get(host.name)
    if store is not None and not store.trusts(home, project):
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
<<<<<<< HEAD
=======


def _static_problems(host: Host, project: Path) -> Iterator[Finding]:
    """What is wrong with the host's files, before anything runs: a program that is not there is never asked."""
    skipped: set[str] = set()
    for scope, finding in _not_trusted(host, project):
        skipped.add(scope)
        yield finding
    for scope in scopes(host, project):
        path = config_path(host, scope, project=project)
        for event, program in missing_programs(host, path):
            yield Finding(event, "silent", f"{path}: `{program}` does not exist, so this hook is never asked")
        for event, text in configured(host, scope, project):
            file = "".join(source_of(text))  # one or the other
            if file and not Path(file).is_file():
                so = "and is not asked for either" if scope in skipped else "so every call is denied"
                yield Finding(event, "broken", f"{path}: `{file}` does not exist, {so}")


def _not_trusted(host: Host, project: Path) -> Iterator[tuple[str, Finding]]:
    """The scopes whose hooks an agent skips without a word until the user has trusted them."""
    if host.name == "codex":
        yield from _codex_skips(host, project)
    if host.name == "grok" and configured(host, "project", project) and not _grok_trusts(host, project):
        path = config_path(host, "project", project=project)
        told = f"{path}: Grok skips the hooks of a folder until `grok --trust` was run in it"
        yield "project", Finding("trust", "silent", told)


def _grok_trusts(host: Host, project: Path) -> bool:
    """Whether a folder, or one above it, is one that Grok runs hooks of."""
    path = config_path(host, "user").parents[1] / "trusted_folders.toml"
    try:
        known = tomllib.loads(path.read_text()).get("folders", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    return any(row.get("trusted") is True and project.is_relative_to(folder) for folder, row in known.items())


def _codex_skips(host: Host, project: Path) -> Iterator[tuple[str, Finding]]:
    """Codex's hooks whose hash is not noted."""
    config = config_path(host, "user").with_name("config.toml")
    try:
        known = config.read_text() if config.exists() else ""
        for scope in scopes(host, project):
            path = config_path(host, scope, project=project)
            hashes = codex_trust.hashes_of(path, path.read_text()) if path.is_file() else {}
            if not codex_trust.is_trusted(known, hashes):
                told = f"{path}: Codex skips hooks that are not trusted; install with --yes"
                yield scope, Finding("trust", "silent", told)
    except (HooklineError, OSError, UnicodeDecodeError) as error:
        yield "", Finding("configuration", "broken", f"{config}: {error}")


# -- the copy -------------------------------------------------------------------------------------------------------


def _copy(host: Host, agent: Agent, home: Path, project: Path, place: Path) -> None:
    """What the agent reads of the user's home and project; the originals are only read."""
    base = config_path(host, "user")
    depth = len(Path(host.config.user).parts)
    real = Path(*base.parts[: len(base.parts) - depth]) if not os.environ.get(host.config.home_env or "-") else None
    for relative in agent.copies:
        first, _, rest = relative.partition("/")
        moved = os.environ.get(host.config.home_env) if host.config.home_env else None
        own = moved is not None and first == Path(host.config.user).parts[0]
        source = Path(moved) / rest if own and moved else (real or Path.home()) / relative
        _copy_one(source, home / relative)
    for relative in agent.project_copies:
        _copy_one(project / relative, place / relative)
    if host.name == "codex":
        _follow_trust(home / ".codex" / "config.toml", {str(base): str(home / ".codex" / "hooks.json"),
                                                       str(project): str(place)})  # fmt: skip


def _copy_one(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        shutil.copy(source, target)
        target.chmod(0o600)


def _follow_trust(path: Path, moved: dict[str, str]) -> None:
    """Codex's trust is bound to where the hooks lie: in the copy they lie elsewhere. The hashes stay as they are."""
    if path.exists():
        text = path.read_text()
        for before, after in moved.items():
            text = text.replace(f'"{before}', f'"{after}')
        path.write_text(text)


# -- the trial ------------------------------------------------------------------------------------------------------


class _Trial:
    """The runs of one agent, and what was seen."""

    def __init__(self, host: Host, agent: Agent, place: Workspace, events: tuple[str, ...]) -> None:
        self.host, self.agent, self.place = host, agent, place
        self.events = events
        self.ours = {host.ours(event) for event in events}
        self.seconds = 0.0
        self._notes = place.home / "hookline-proof.jsonl"
        canary.begin(self._notes)

    def findings(self) -> Iterator[Finding]:
        """Everything that was tried."""
        kinds = ["allow", "deny", "hang", "crash", "exit"] if "PreToolUse" in self.ours else ["allow"]
        if "PreToolUse" in self.ours and able(self.host, "rewrite"):
            kinds.insert(2, "rewrite")
        done = self._run("please run the canaries", [self._turn(kind) for kind in kinds] + self._writing())
        if not done.model.turns_asked:
            yield Finding("agent", "cannot tell", f"{self.host.title} did not reach the model: {_last_line(done)}")
            return
        notes = self._read()
        yield from self._fired(notes)
        if "PreToolUse" in self.ours:
            yield from (self._call(kind, done, notes) for kind in kinds)
        yield from self._unknown_tools(done)
        yield from self._prompt_gate()
        yield from _hooks_asked(notes)

    def _writing(self) -> list[ModelTurn]:
        """A file is written, too, for hooks that look at nothing but files; what comes of it is theirs to say."""
        return [ModelTurn(tools=(self.agent.write(str(self.place.project / f"{canary.TOKEN}.txt")),))]

    def _turn(self, kind: str) -> ModelTurn:
        return ModelTurn(tools=(self.agent.shell(canary.command(kind, self.place.project)),))

    def _run(self, prompt: str, turns: list[ModelTurn]) -> ProgramRun:
        env = {canary.VARIABLE: str(self._notes)}
        if _SERVICE in os.environ:  # what answers the user's agent answers here
            env[_SERVICE] = os.environ[_SERVICE]
        done = run(self.agent, self.place, prompt, turns, env=env, limit=180)
        self.seconds += done.seconds
        return done

    def _read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._notes.read_text().splitlines()[1:]]

    def _fired(self, notes: list[dict[str, Any]]) -> Iterator[Finding]:
        seen = {note["asked_for"] for note in notes if "asked_for" in note}
        for event in self.events:
            ours = self.host.ours(event)
            if event in seen:
                yield Finding(event, "fired")
            elif ours in _ALWAYS:
                yield Finding(event, "silent", f"it is configured, and {self.host.title} never asked")
            else:
                yield Finding(event, "not tried", "nothing in a proof causes it")

    def _call(self, kind: str, done: ProgramRun, notes: list[dict[str, Any]]) -> Finding:
        """What came of one canary."""
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
        by = _decided_by(kind, notes)
        if by:
            return Finding(what, "enforced", f"refused by your hook `{by}`")
        if expected:
            return Finding(what, "broken", "it did not run")
        told = done.model.read(canary.REASON if kind == "deny" else "fails closed")
        return Finding(what, "enforced", "refused; the model read why" if told else "refused")

    def _unknown_tools(self, done: ProgramRun) -> Iterator[Finding]:
        """The tools that the agent offers its model and that are in no table: only their input can be judged."""
        for name in unknown_offers(self.host, done.model.tools, self._mcp_servers()):
            told = f"{self.host.title} offers it, and Hookline does not know what it does: only its input is judged"
            yield Finding(f"tool {name}", "unknown", told)

    def _mcp_servers(self) -> list[str]:
        """The servers whose tools cannot be told from the agent's own by their names: opencode's."""
        path = self.place.home / ".config/opencode/opencode.json"
        servers = jsonc.lookup(jsonc.parse(path.read_text()), ("mcp",)) if path.exists() else None
        return list(servers.members) if servers else []

    def _prompt_gate(self) -> Iterator[Finding]:
        if "UserPromptSubmit" not in self.ours:
            return
        if not able(self.host, "gate prompt"):
            yield Finding("prompt gate", "silent", f"{self.host.title} cannot refuse a prompt")
            return
        done = self._run(canary.prompt("deny"), [])
        kept = done.model.turns_asked == 0
        yield Finding(
            "prompt gate", "enforced" if kept else "silent", "the model never saw it" if kept else "it went through"
        )


_WORDS = {"allow": "allow", "deny": "deny", "rewrite": "rewrite", "hang": "a hook hangs", "crash": "a hook crashes",
          "exit": "a hook exits"}  # fmt: skip
_ALWAYS = frozenset({"PreToolUse", "UserPromptSubmit"})


def _decided_by(kind: str, notes: list[dict[str, Any]]) -> str:
    """The user's own hook that refused a canary before ours was asked."""
    found = (note["decided_by"] for note in notes if note.get("kind") == kind and note.get("decided_by"))
    return next((name for name in found if canary.NAME not in name), "")


def _hooks_asked(notes: list[dict[str, Any]]) -> Iterator[Finding]:
    """The user's own hooks that were asked, and on which events."""
    found: dict[str, list[str]] = {}
    known: dict[str, str] = {}
    failed: dict[str, str] = {}
    for note in notes:
        for name, matcher in note.get("hooks", {}).items():
            known.setdefault(name, matcher)
        for name in note.get("asked", ()):
            if not name.startswith(canary.NAME) and note["event"] not in found.setdefault(name, []):
                found[name].append(note["event"])
        failed |= {name: error for name, error in note.get("failed", {}).items() if not name.startswith(canary.NAME)}
    for name, events in found.items():
        broken = f"; it failed: {failed[name]}" if name in failed else ""
        yield Finding(f"hook {name}", "broken" if broken else "fired", f"on {', '.join(events)}{broken}")
    for name in known.keys() - found.keys():
        yield Finding(f"hook {name}", "not tried", f"nothing in a proof matches `{known[name]}`")


def _last_line(done: ProgramRun) -> str:
    lines = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    how = "it hung" if done.exit_code is None else f"exit code {done.exit_code}"
    return f"{how}; {lines[-1][:200]}" if lines else how
>>>>>>> 3caf771 (english: plain words in the rest of the rooms)
