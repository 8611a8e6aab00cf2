"""Sensitive places: what is written there may run later, so no allow rule reaches them."""

from __future__ import annotations

import pytest

from hookline.guards.permissions import decide, read_rules

ALLOWED = read_rules({}, allowed=["Bash", "Write"])


@pytest.mark.parametrize(
    "command, behaviour",
    [
        ("echo x > .git/hooks/pre-commit", "ask"),
        ("cp a.json .claude/settings.local.json", "ask"),
        ("echo x | tee ~/.bashrc", "ask"),
        ("mkdir -p .vscode && true", "ask"),
        ("echo c > .env; echo x > .git/hooks/pre-commit", "ask"),
        ("cat .git/config", "allow"),
        ("sleep 2; echo b >> watched.txt; echo c > .env; sleep 2; rm watched.txt", "allow"),
        ("echo key >> .ssh/known_hosts", "allow"),
        ("echo x > out.txt", "allow"),
    ],
)
def test_a_command_that_writes_to_a_sensitive_place_is_asked_about(command: str, behaviour: str) -> None:
    """As the Claude CLI does, also with `Bash` allowed outright."""
    assert decide("Bash", {"command": command}, rules=ALLOWED, cwd="/p").behaviour == behaviour


def test_an_explicit_allow_reaches_secrets_and_accept_edits_does_not() -> None:
    """As in the Claude CLI: who allows `Bash` or `Write` outright has said so; extra caution is a guard's."""
    for tool, given in (("Bash", {"command": "echo c > .env"}), ("Write", {"file_path": "/p/.env", "content": ""})):
        edits = tool == "Write"
        assert decide(tool, given, rules=ALLOWED, edits=edits, cwd="/p").behaviour == "allow", tool
        assert decide(tool, given, rules=read_rules({}), edits=edits, mode="acceptEdits", cwd="/p").behaviour == "ask"


def test_a_hook_may_allow_what_a_rule_may_not() -> None:
    """A hook has seen the very call; a rule has not."""
    given = {"file_path": "/p/.git/config", "content": ""}

    assert decide("Write", given, rules=ALLOWED, edits=True, cwd="/p").behaviour == "ask"
    assert decide("Write", given, rules=ALLOWED, edits=True, cwd="/p", hook_decision="allow").behaviour == "allow"
