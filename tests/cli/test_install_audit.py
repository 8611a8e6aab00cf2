"""`hookline install HOST --audit`: everything that an agent does is in one log, which `console` and `audit` find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.table import HOSTS
from tests.cli.place import Place

LOG = "home/.local/state/hookline/log/audit.jsonl"
HOOKS = "from hookline import Hooks\nfrom hookline.guards import commands\n\nhooks = Hooks()\n"
BLOCKING = f"{HOOKS}hooks.add(commands.block(['rm *']))\n"
LOGGING = f"{HOOKS}from hookline.records import AuditLog\nhooks.observe(AuditLog('audit.jsonl'))\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for folder in ("home", "proj/sub"):
        (tmp_path / folder).mkdir(parents=True)
    return Place(tmp_path)


def entries(place: Place) -> dict[str, str]:
    """Claude Code's events, and the command of each."""
    settings = json.loads((place.base / "home" / ".claude" / "settings.json").read_text())
    return {event: groups[0]["hooks"][0]["command"] for event, groups in settings["hooks"].items()}


def ask(place: Place, event: str, folder: str = ".", **more: Any) -> str:
    """What our entry answers, asked as Claude Code asks, from a folder of the project."""
    payload = {"hook_event_name": event, "session_id": "s1", "cwd": str(place.project / folder), **more}
    line = f"cd {folder} && {{ {entries(place)[event]}; }}"
    done = place.start("sh", "-c", line, stdin=json.dumps(payload), CLAUDE_PROJECT_DIR=str(place.project))
    assert done.returncode == 0, done.stderr
    return done.stdout


def bash(line: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": line}}


def records(place: Place) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place.base / LOG).read_text().splitlines()]


def test_one_command_logs_every_event_of_a_session_in_one_file(place: Place) -> None:
    """Also after the agent has gone to another folder; nothing is refused."""
    done = place.run("install", "claude", "--audit")
    assert done.returncode == 0, done.stderr
    assert str(place.base / LOG) in done.stdout

    assert {"PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"} <= {*entries(place)}
    ask(place, "UserPromptSubmit", prompt="hello")
    ask(place, "PreToolUse", **bash("ls"))
    ask(place, "PreToolUse", "sub", **bash("rm -rf x"))

    found = records(place)
    assert {record["event"] for record in found} == {"UserPromptSubmit", "PreToolUse"}
    assert {record["decision"] for record in found} == {"pass"}
    assert len({record["run"] for record in found}) == 1
    assert len(found) == 3


def test_what_reads_logs_finds_it_without_an_argument(place: Place) -> None:
    """`audit show` as well as `console`, whose list of logs is the same; without any, the command is named."""
    none = place.run("audit", "show")
    place.run("install", "claude", "--audit")
    ask(place, "PreToolUse", **bash("ls"))

    assert "hookline install claude --audit" in none.stderr
    assert "PreToolUse Bash ls" in place.run("audit", "show").stdout
    assert place.run("audit", "report", "-o", "r.html").returncode == 0


def test_a_log_is_added_to_hooks_and_hooks_to_a_log(place: Place) -> None:
    """The second command keeps what the first has installed."""
    place.write("hooks.py", BLOCKING)
    for order in (["--audit"], ["--hooks", "hooks.py"]), (["--hooks", "hooks.py"], ["--audit"]):
        for words in order:
            done = place.run("install", "claude", *words)
            assert done.returncode == 0, done.stderr
        assert '"deny"' in ask(place, "PreToolUse", **bash("rm x"))
        assert records(place)[-1]["decision"] == "deny"
        assert place.run("uninstall", "claude").returncode == 0
        (place.base / LOG).unlink()


def test_a_hook_file_that_only_logs_is_installed(place: Place) -> None:
    """It listens to nothing, but its log wants to be told."""
    place.write("hooks.py", LOGGING)
    done = place.run("install", "claude", "--hooks", "hooks.py")

    assert done.returncode == 0, done.stderr
    assert {"PreToolUse", "PostToolUse", "Stop"} <= {*entries(place)}


def test_every_agent_can_be_logged(place: Place) -> None:
    """Each host is told of what it has events for."""
    failed = [name for name in HOSTS if place.run("install", name, "--audit", "--yes").returncode]

    assert failed == []
