"""The user's permission rules on a line that a guard confines: they speak of the line, not of what is around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.core.wire import claude
from hookline.events import PreToolUse
from hookline.guards import commands, paths
from hookline.guards.sandboxing import unavailable, unwrapped
from hookline.hosts.answer import answer, serve
from hookline.hosts.table import HOSTS
from hookline.replies import Decision, Reply, deny, rewrite
from hookline.settings import load
from hookline.settings.trust.store import Trust

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")

RULES = {"deny": ["Bash(git push:*)"], "ask": ["Bash(npm publish:*)"], "allow": ["Bash(make:*)", "Bash(git:*)"]}


class Words:
    """A host that is answered with replies."""

    def decode(self, payload: PreToolUse) -> PreToolUse:
        return payload

    def encode(self, reply: Reply, event: Any) -> Reply:
        return reply

    def refuse(self, problem: BaseException, payload: PreToolUse, event: Any) -> Reply:
        return deny(f"refused: {problem}")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, a project and an administrator's file, all of them empty."""
    for name in ("home", "project"):
        (tmp_path / name / ".claude").mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOOKLINE_MANAGED_SETTINGS", str(tmp_path / "managed.json"))
    return tmp_path


FILES = {
    "managed": "managed.json",
    "user": "home/.claude/settings.json",
    "project": "project/.claude/settings.json",
    "local": "project/.claude/settings.local.json",
}


def write(place: Path, kind: str, permissions: Any, **more: Any) -> None:
    (place / FILES[kind]).write_text(json.dumps({"permissions": permissions, **more}))


def event_of(place: Path, line: str, folder: str = "project") -> PreToolUse:
    return PreToolUse(cwd=str(place / folder), tool_name="Bash", tool_use_id="t1", tool_input={"command": line})


async def said(place: Path, line: str, folder: str = "project") -> Reply:
    hooks = Hooks()
    hooks.add(paths.stay_inside(place / "project", confine="auto"))
    hooks.add(commands.block(["sudo *"], confine="auto"))
    return await answer(hooks, event_of(place, line, folder), Words())


def line_in(reply: Reply) -> str | None:
    found = unwrapped(reply.input["command"]) if reply.input else None
    return found[1] if found else None


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git push origin main",
        "make && git push",
        "(git push)",
        "FOO=1 git push",
        "bash -c 'git push'",
        "cd sub; git push",
        "echo $(git push)",
    ],
)
async def test_a_deny_rule_of_any_file_denies(place: Path, kind: str, line: str) -> None:
    """The rule and its file are named, and nothing is left to run."""
    write(place, kind, RULES)

    reply = await said(place, line)

    assert (reply.decision, reply.input) == (Decision.DENY, None)
    assert "rule `Bash(git push:*)` denies it" in reply.reason
    assert Path(FILES[kind]).name in reply.reason


@pytest.mark.parametrize("kind", FILES)
async def test_an_ask_rule_asks_and_a_yes_is_confined(place: Path, kind: str) -> None:
    """Whoever says yes says it to the line that is held."""
    write(place, kind, RULES)

    reply = await said(place, "npm publish --tag next")

    assert (reply.decision, line_in(reply)) == (Decision.ASK, "npm publish --tag next")
    assert "rule `Bash(npm publish:*)` asks first" in reply.reason


@pytest.mark.parametrize("kind", ["managed", "user"])
async def test_an_allow_rule_saves_the_question(place: Path, kind: str) -> None:
    """Every part of the line has to be allowed; what is not stays as undecided as it was."""
    write(place, kind, RULES)

    assert [(await said(place, line)).decision for line in ("make all", "make && git commit -m x")] == [
        Decision.ALLOW
    ] * 2
    for line in ("touch x", "make; touch x", "make $(touch x)", "python3 -c 'print(1)'", "make > .git/config"):
        reply = await said(place, line)
        assert (reply.decision, line_in(reply)) == (Decision.PASS, line)


@pytest.mark.parametrize("kind", ["project", "local"])
async def test_a_projects_allow_rule_counts_once_it_is_trusted(place: Path, kind: str) -> None:
    """What only restricts holds at once (above); what opens has to be looked at first, and again when it changes."""
    write(place, kind, RULES)
    before = await said(place, "make all")
    trust = Trust.load()
    trust.record(trust.status(load(place / "project")).items)
    trusted = await said(place, "make all")
    write(place, kind, {"allow": ["Bash"]})
    changed = await said(place, "touch x")

    assert [one.decision for one in (before, trusted, changed)] == [Decision.PASS, Decision.ALLOW, Decision.PASS]


async def test_a_line_that_only_reads_is_no_new_question(place: Path) -> None:
    """The host would have run it unasked, and cannot tell any more that it only reads."""
    reply = await said(place, "ls -la")

    assert reply.decision is Decision.ALLOW
    assert unwrapped((reply.input or {})["command"]) is not None
    assert (await said(place, "touch new")).decision is Decision.PASS


async def test_an_administrator_may_want_no_rules_but_their_own(place: Path) -> None:
    """Then others' rules open nothing; what they deny is denied all the same."""
    write(place, "managed", {"allow": ["Bash(make:*)"]}, allowManagedPermissionRulesOnly=True)
    write(place, "user", {"allow": ["Bash(touch:*)"], "deny": ["Bash(npm:*)"]})

    found = [(await said(place, line)).decision for line in ("make", "touch x", "npm ci")]

    assert found == [Decision.ALLOW, Decision.PASS, Decision.DENY]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"permissions": 3}',
        '{"permissions": {"deny": [3]}}',
        '{"permissions": {"deny": ["Bash(git push"]}}',
        '{"permissions": {"ask": ["(git push)"], "allow": ["Bash"]}}',
    ],
)
@pytest.mark.parametrize("kind", FILES)
async def test_rules_that_cannot_be_read_are_asked_about(place: Path, kind: str, text: str) -> None:
    """They may deny the line: no file of rules is passed over because of a comma."""
    (place / FILES[kind]).write_text(text)

    reply = await said(place, "touch x")

    assert (reply.decision, line_in(reply)) == (Decision.ASK, "touch x")
    assert "permission rules cannot be read" in reply.reason


async def test_a_file_that_may_not_be_opened_is_asked_about(place: Path) -> None:
    """A folder where a file should be stands for every way in which reading fails."""
    (place / FILES["user"]).mkdir()

    assert (await said(place, "touch x")).decision is Decision.ASK


async def test_the_rules_are_those_of_the_project_that_a_folder_belongs_to(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cd sub` does not leave the rules behind; Claude Code says which project it is in."""
    (place / "project" / "sub").mkdir()
    write(place, "project", RULES)
    below = await said(place, "git push", "project/sub")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(place / "project"))
    (place / "project" / "sub" / ".claude").mkdir()

    assert below.decision is Decision.DENY
    assert (await said(place, "git push", "project/sub")).decision is Decision.DENY


async def test_other_rewrites_are_left_to_the_host(place: Path) -> None:
    """It applies its rules to them itself."""
    write(place, "user", RULES)
    hooks = Hooks()

    async def hook(event: PreToolUse) -> Reply:
        return rewrite({"command": "git push"})

    hooks.add(PreToolUse, hook)

    assert await answer(hooks, event_of(place, "true"), Words()) == rewrite({"command": "git push"})


async def test_what_a_hook_made_of_the_line_is_what_the_rules_speak_of(place: Path) -> None:
    """As on the host: rules see the input that hooks leave."""
    write(place, "user", RULES)
    hooks = Hooks(order="sequential")

    async def hook(event: PreToolUse) -> Reply:
        return rewrite({"command": "git push"})

    hooks.add(PreToolUse, hook, priority=1000)
    hooks.add(commands.block(["sudo *"], confine="auto"))

    assert (await answer(hooks, event_of(place, "make"), Words())).decision is Decision.DENY


async def test_the_command_that_hosts_run_applies_them_for_claude_code(place: Path) -> None:
    """`hookline answer claude`; the rules of other hosts stand in files of their own."""
    write(place, "user", RULES)
    hooks = Hooks()
    hooks.add(commands.block(["sudo *"], confine="auto"))
    payload = claude.encode_event(event_of(place, "git push"))

    response = await serve(hooks, HOSTS["claude"], payload, event="PreToolUse")

    assert json.loads(response.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
