"""The runs of a proof: calls that must run and calls that must not, and what came of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hookline.events import spec_of
from hookline.hosts.decode import unknown_offers
from hookline.hosts.host import Host, able
from hookline.hosts.install import jsonc
from hookline.hosts.install.entries import Scope
from hookline.hosts.proof_recipe import ProofRecipe
from hookline.hosts.prove import canary
from hookline.hosts.prove.model import ModelTurn
from hookline.hosts.prove.run import ProgramRun, Workspace, run

_SERVICE = "HOOKLINE_SERVICE"
GOOD = ("enforced", "fired", "not tried")
"""What a line may say of something that is no cause for worry; a gate that was not tried is `not proven`."""


class Finding(NamedTuple):
    """One line of a proof: what was tried or looked at, and what came of it."""

    what: str
    status: str
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether it holds, or is nothing that a proof must show."""
        return self.status in GOOD


class Trial:
    """The runs of one agent, and what was seen."""

    def __init__(
        self, host: Host, agent: ProofRecipe, place: Workspace, events: Mapping[Scope, tuple[str, ...]]
    ) -> None:
        self.host: Host = host
        self.agent: ProofRecipe = agent
        self.place: Workspace = place
        self.events: Mapping[Scope, tuple[str, ...]] = events
        self.ours: set[str | None] = {host.ours(event) for found in events.values() for event in found}
        self.seconds: float = 0.0
        self._notes = place.home / "hookline-proof.jsonl"
        self._notes.write_bytes(canary.HEADER)

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
            yield self._written(notes)
        yield from self._unknown_tools(done)
        yield from self._prompt_gate()
        yield from _hooks_asked(notes)

    def _writing(self) -> list[ModelTurn]:
        """A file is written, too: an entry may be asked about commands alone; whether it is refused is the hooks'."""
        return [ModelTurn(tools=(self.agent.write(str(self.place.project / f"{canary.TOKEN}-write")),))]

    def _written(self, notes: list[dict[str, Any]]) -> Finding:
        if any(note.get("canary") == "write" for note in notes):
            return Finding("a file is written", "fired")
        ran = canary.ran("write", self.place.project)
        return Finding("a file is written", "silent" if ran else "not proven",
                       "and the hooks were not asked" if ran else "the agent did not try to")  # fmt: skip

    def _turn(self, kind: str) -> ModelTurn:
        return ModelTurn(tools=(self.agent.bash(canary.command(kind, self.place.project)),))

    def _run(self, prompt: str, turns: list[ModelTurn]) -> ProgramRun:
        env = {canary.VARIABLE: str(self._notes)}
        if _SERVICE in os.environ:  # whoever answers the user's agent answers here
            env[_SERVICE] = os.environ[_SERVICE]
        done = run(self.agent, self.place, prompt, turns, env=env, limit=180)
        self.seconds += done.seconds
        return done

    def _read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._notes.read_text().splitlines()[1:]]

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
        """The servers whose tools cannot be told from the agent's own by their names."""
        path = self.place.home / self.agent.servers
        servers = jsonc.lookup(jsonc.parse(path.read_text()), ("mcp",)) if path.is_file() else None
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
    gates: set[str] = set()
    failed: dict[str, str] = {}
    for note in notes:
        for name, matcher in note.get("hooks", {}).items():
            known.setdefault(name, matcher)
        gates.update(note.get("gates", ()))
        for name in note.get("asked", ()):
            if not name.startswith(canary.NAME) and note["event"] not in found.setdefault(name, []):
                found[name].append(note["event"])
        failed |= {name: error for name, error in note.get("failed", {}).items() if not name.startswith(canary.NAME)}
    for name, events in found.items():
        broken = f"; it failed: {failed[name]}" if name in failed else ""
        yield Finding(f"hook {name}", "broken" if broken else "fired", f"on {', '.join(events)}{broken}")
    for name in known.keys() - found.keys():
        status = "not proven" if name in gates else "not tried"
        yield Finding(f"hook {name}", status, f"nothing in a proof matches `{known[name]}`")


def _last_line(done: ProgramRun) -> str:
    lines = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    how = "it hung" if done.exit_code is None else f"exit code {done.exit_code}"
    return f"{how}; {lines[-1][:200]}" if lines else how
