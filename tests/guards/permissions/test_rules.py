"""Rules from settings and flags, updates to them, and what is suggested for a call."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.guards.permissions import Mode, apply, read_rules, removed_tools, suggestions
from hookline.guards.permissions.rules import AppliedUpdates, split_rules


def test_flags_join_the_settings() -> None:
    """`--allowedTools` adds allow rules, `--disallowedTools` deny rules."""
    found = read_rules(
        {"allow": ["Read"], "ask": ["Bash(curl *)", 3], "deny": "x"},
        allowed=["Edit,Write"],
        disallowed=["Bash(rm -rf *) Bash"],
    )

    assert [str(rule) for rule in found.allow] == ["Read", "Edit", "Write"]
    assert [str(rule) for rule in found.ask] == ["Bash(curl *)"]
    assert [str(rule) for rule in found.deny] == ["Bash(rm -rf *)", "Bash"]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("Bash(git *),Read", ["Bash(git *)", "Read"]),
        ("Bash(git *) Read", ["Bash(git *)", "Read"]),
        ("Bash(a, (b))", ["Bash(a, (b))"]),
        (") Read", [")", "Read"]),
        (" , ", []),
    ],
)
def test_rules_in_one_flag(text: str, expected: list[str]) -> None:
    """Commas and spaces separate rules, except inside parentheses."""
    assert split_rules(text) == expected


def test_a_bare_deny_rule_removes_the_tool() -> None:
    """With a pattern the tool stays; without one the model never sees it."""
    tools = ["Agent", "Bash", "Edit", "Glob", "Read", "Write"]

    gone = removed_tools(read_rules({"deny": ["Bash", "Task", "Read(x)", "Write(*)", "Edit("]}), tools)

    assert gone == {"Bash", "Agent", "Write"}


@pytest.mark.parametrize(
    "rule, gone",
    [
        ("mcp__srv", {"mcp__srv__echo", "mcp__srv__fail"}),
        ("mcp__srv__*", {"mcp__srv__echo", "mcp__srv__fail"}),
        ("mcp__srv__echo", {"mcp__srv__echo"}),
        ("mcp__srv__echo(x)", set()),
        ("mcp__s", set()),
    ],
)
def test_a_deny_rule_of_an_mcp_server_removes_its_tools(rule: str, gone: set[str]) -> None:
    """All of them, and no other server's."""
    tools = ["Bash", "mcp__srv__echo", "mcp__srv__fail", "mcp__srv2__echo"]

    assert removed_tools(read_rules({"deny": [rule]}), tools) == gone


def test_problems_are_kept() -> None:
    """A rule that cannot be read matches nothing, and is not forgotten."""
    (rule,) = read_rules({"deny": ["Bash("]}).deny
    assert rule.problem == "condition `Bash(`: `(` is never closed at position 4; write `Tool` or `Tool(pattern)`"


def test_rules_join() -> None:
    """Rules of several files are one after the other."""
    assert read_rules({"allow": ["A"]}) | read_rules({"allow": ["B"]}) == read_rules({"allow": ["A", "B"]})


UPDATES = ["addRules", "replaceRules", "removeRules", "setMode", "addDirectories", "removeDirectories"]
BASE = read_rules({"allow": ["Read", "Bash(git *)"], "deny": ["Write"]})
GIT = {"toolName": "Bash", "ruleContent": "git *"}


@pytest.mark.parametrize(
    "update,expected",
    [
        (
            {"type": "addRules", "rules": [{"toolName": "Edit"}], "behavior": "ask"},
            AppliedUpdates(
                read_rules({"allow": ["Read", "Bash(git *)"], "ask": ["Edit"], "deny": ["Write"]}),
                Mode.DEFAULT,
                ("/a",),
            ),
        ),
        ({"type": "addRules", "rules": ["Read"], "behavior": "allow"}, AppliedUpdates(BASE, Mode.DEFAULT, ("/a",))),
        (
            {"type": "removeRules", "rules": [GIT], "behavior": "allow"},
            AppliedUpdates(read_rules({"allow": ["Read"], "deny": ["Write"]}), Mode.DEFAULT, ("/a",)),
        ),
        (
            {"type": "replaceRules", "rules": [GIT], "behavior": "deny"},
            AppliedUpdates(
                read_rules({"allow": ["Read", "Bash(git *)"], "deny": ["Bash(git *)"]}), Mode.DEFAULT, ("/a",)
            ),
        ),
        ({"type": "setMode", "mode": "acceptEdits"}, AppliedUpdates(BASE, Mode.ACCEPT_EDITS, ("/a",))),
        ({"type": "addDirectories", "directories": ["/a", "/b"]}, AppliedUpdates(BASE, Mode.DEFAULT, ("/a", "/b"))),
        ({"type": "removeDirectories", "directories": ["/a"]}, AppliedUpdates(BASE, Mode.DEFAULT, ())),
        (
            {"type": "setMode", "mode": "x"},
            AppliedUpdates(
                BASE,
                Mode.DEFAULT,
                ("/a",),
                (f"unknown permission mode `x`; write one of {', '.join(Mode)}",),
            ),
        ),
        (
            {"type": "addRules", "behavior": "x"},
            AppliedUpdates(
                BASE,
                Mode.DEFAULT,
                ("/a",),
                ("permission update `addRules` has behavior `x`; write allow, ask or deny",),
            ),
        ),
        (
            {"type": "x"},
            AppliedUpdates(
                BASE,
                Mode.DEFAULT,
                ("/a",),
                (f"unknown permission update `x`; write one of {', '.join(UPDATES)}",),
            ),
        ),
    ],
)
def test_updates(update: dict[str, Any], expected: AppliedUpdates) -> None:
    """Each kind of update changes one thing; one that makes no sense is named and changes nothing."""
    assert apply([update], BASE, Mode.DEFAULT, ["/a"]) == expected


@pytest.mark.parametrize(
    "tool,tool_input,expected",
    [
        ("Bash", {"command": "git push origin main"}, ["git push *"]),
        ("Bash", {"command": "ls -la && npm test"}, ["ls *", "npm *"]),
        ("Bash", {"command": "X=1"}, []),
        ("mcp__a__b", {}, [None]),
        ("WebFetch", {"url": "https://Docs.Example.com/x"}, ["domain:docs.example.com"]),
    ],
)
def test_suggestions_name_a_prefix(tool: str, tool_input: dict[str, Any], expected: list[str | None]) -> None:
    """What is suggested would let the same kind of call pass."""
    (update,) = suggestions(tool, tool_input)

    assert [rule.get("ruleContent") for rule in update["rules"]] == expected
    assert (update["type"], update["behavior"], update["destination"]) == ("addRules", "allow", "localSettings")


def test_suggestions_for_edits_and_for_lines_that_cannot_be_told() -> None:
    """An edit suggests the mode; a line that cannot be read suggests nothing."""
    assert suggestions("Write", {}) == [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    assert suggestions("Bash", {"command": "$x"}) == []
    assert suggestions("WebFetch", {"url": "http://[bad"}) == []
