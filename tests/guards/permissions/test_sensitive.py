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
        ("cat .git/config", "allow"),
        ("echo x > out.txt", "allow"),
    ],
)
def test_a_command_that_writes_to_a_sensitive_place_is_asked_about(command: str, behaviour: str) -> None:
    """As the Claude CLI does, also with `Bash` allowed outright."""
    assert decide("Bash", {"command": command}, rules=ALLOWED, cwd="/p").behaviour == behaviour


def test_a_hook_may_allow_what_a_rule_may_not() -> None:
    """A hook has seen the very call; a rule has not."""
    given = {"file_path": "/p/.git/config", "content": ""}

    assert decide("Write", given, rules=ALLOWED, edits=True, cwd="/p").behaviour == "ask"
    assert decide("Write", given, rules=ALLOWED, edits=True, cwd="/p", hook_decision="allow").behaviour == "allow"
