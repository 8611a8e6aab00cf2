"""Who wins when rules, hooks and modes disagree about a call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.guards.permissions import Mode, Permission, Rules, decide, read_rules

CWD = "/home/u/proj"
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
WRITES = "echo ran >> out.txt; echo hello"


def decided(tool: str, tool_input: dict[str, Any], **known: Any) -> Permission:
    """The decision in the usual place."""
    tools = {
        "Read": {"read_only": True},
        "Grep": {"read_only": True},
        "Write": {"edits": True},
        "Edit": {"edits": True},
    }
    options: dict[str, Any] = {"rules": Rules(), "cwd": CWD, "home": "/home/u", **tools.get(tool, {}), **known}
    return decide(tool, tool_input, **options)


def bash(command: str, **known: Any) -> str:
    """What happens with a shell line."""
    return decided("Bash", {"command": command}, **known).behaviour


def rules(allow: str = "", ask: str = "", deny: str = "") -> Rules:
    """One rule of each kind at most."""
    listed = {"allow": allow, "ask": ask, "deny": deny}
    return read_rules({key: [rule] for key, rule in listed.items() if rule})


@pytest.mark.parametrize(
    "known,expected",
    [
        ({}, "ask"),
        ({"rules": rules(allow="Bash")}, "allow"),
        ({"rules": rules(allow="Bash(echo *)")}, "ask"),
        ({"hook_decision": "allow"}, "allow"),
        ({"hook_decision": "deny", "rules": rules(allow="Bash"), "mode": "bypassPermissions"}, "deny"),
        ({"hook_decision": "allow", "rules": rules(deny="Bash(echo *)")}, "deny"),
        ({"hook_decision": "allow", "rules": rules(ask="Bash(echo *)")}, "ask"),
        ({"hook_decision": "ask", "rules": rules(allow="Bash")}, "ask"),
        ({"hook_decision": "ask", "mode": "bypassPermissions"}, "ask"),
        ({"mode": "bypassPermissions"}, "allow"),
        ({"mode": "bypassPermissions", "rules": rules(deny="Bash(echo *)")}, "deny"),
        ({"mode": "bypassPermissions", "rules": rules(ask="Bash(echo *)")}, "ask"),
        ({"mode": "dontAsk"}, "deny"),
        ({"mode": "dontAsk", "hook_decision": "allow"}, "allow"),
        ({"mode": "dontAsk", "hook_decision": "ask"}, "deny"),
        ({"mode": "plan", "hook_decision": "allow"}, "deny"),
        ({"mode": "plan", "rules": rules(allow="Bash")}, "deny"),
        ({"mode": "acceptEdits"}, "allow"),
        ({"mode": "auto"}, "ask"),
    ],
)
def test_precedence(known: dict[str, Any], expected: str) -> None:
    """Deny before ask before allow; hooks cannot vote a rule away; modes come last."""
    assert bash(WRITES, **known) == expected


@pytest.mark.parametrize(
    "command,rule,expected",
    [
        ("cat a.env", "Read(*.env)", "deny"),
        ("cat b.txt; grep a ./a.env | wc", "Read(*.env)", "deny"),
        ("head < a.env", "Read(*.env)", "deny"),
        ("cp a.env c.txt", "Read(*.env)", "deny"),
        ("sed -n 1p a.env", "Read(*.env)", "deny"),
        ("echo a.env", "Read(*.env)", "allow"),
        ("grep a.env b.txt", "Read(*.env)", "allow"),
        ("echo x > a.env", "Read(*.env)", "allow"),
        ("cat a.env", "Edit(*.env)", "allow"),
        ("echo x > a.env", "Edit(*.env)", "deny"),
        ("python3 x.py > a.env", "Edit(*.env)", "deny"),
        ("touch a.env", "Edit(*.env)", "deny"),
        ("sed -i s/b/c/ a.env", "Edit(*.env)", "deny"),
        ("mv b.txt a.env", "Edit(*.env)", "deny"),
        ("cat a.env", "Read", "allow"),
    ],
)
def test_path_rules_hold_for_the_shell_too(command: str, rule: str, expected: str) -> None:
    """A file that may not be read or edited is not read or written by a shell line either, as far as its text tells."""
    assert bash(command, rules=rules(allow="Bash", deny=rule)) == expected


def test_a_deny_rule_that_may_apply_asks() -> None:
    """Where reading cannot tell, neither a bare allow nor bypass lets the line through unseen."""
    both = rules(allow="Bash", deny="Bash(rm *)")

    assert bash("echo $(date)", rules=both) == "allow"
    assert bash("echo hi | sh", rules=both) == "ask"
    assert bash("rm $x", rules=both) == "deny"
    assert bash("$x y", rules=both, mode="bypassPermissions") == "ask"
    assert decided("Bash", {"command": "r$x y"}, rules=both).reason == (
        "rule `Bash(rm *)` may deny it, which cannot be told: which program `r$x` names is known only when it runs"
    )


@pytest.mark.parametrize(
    "tool,tool_input,known,expected",
    [
        ("Read", {"file_path": "a.py"}, {}, ("allow", "other")),
        ("Read", {"file_path": "/etc/passwd"}, {}, ("ask", "workingDir")),
        ("Read", {"file_path": "/opt/x/y"}, {"dirs": ["/opt/x"]}, ("allow", "other")),
        ("Read", {"file_path": "../proj2/y"}, {}, ("ask", "workingDir")),
        ("Read", {"file_path": "~/y"}, {"mode": "dontAsk"}, ("deny", "mode")),
        ("Read", {"file_path": "/etc/passwd"}, {"mode": "plan"}, ("ask", "workingDir")),
        ("Grep", {"pattern": "x"}, {}, ("allow", "other")),
        ("Write", {"file_path": "a.py"}, {}, ("ask", "other")),
        ("Write", {"file_path": "a.py"}, {"mode": "acceptEdits"}, ("allow", "mode")),
        ("Write", {"file_path": "/etc/x"}, {"mode": "acceptEdits"}, ("ask", "workingDir")),
        ("Write", {"file_path": ".git/hooks/pre-commit"}, {"mode": "acceptEdits"}, ("ask", "other")),
        ("Write", {}, {"mode": "acceptEdits"}, ("ask", "other")),
        ("Write", {"file_path": "a.py"}, {"mode": "plan"}, ("ask", "mode")),
        ("Write", {"file_path": "a.py"}, {"mode": "plan", "hook_decision": "allow"}, ("ask", "mode")),
        ("mcp__a__b", {}, {"mode": "plan", "rules": rules(allow="mcp__a")}, ("ask", "mode")),
        ("Agent", {"prompt": "p"}, {"within_session": True}, ("allow", "other")),
        ("Agent", {"prompt": "p"}, {"within_session": True, "mode": "dontAsk"}, ("allow", "other")),
        ("Agent", {"prompt": "p"}, {"within_session": True, "rules": rules(ask="Agent")}, ("ask", "rule")),
        ("Agent", {"prompt": "p"}, {"within_session": True, "mode": "plan"}, ("deny", "mode")),
        ("Write", {"file_path": "src/a"}, {"rules": rules(allow="Edit(src/**)")}, ("allow", "rule")),
        ("mcp__a__b", {}, {}, ("ask", "other")),
        ("mcp__a__b", {}, {"rules": rules(allow="mcp__a")}, ("allow", "rule")),
        ("TaskList", {}, {"read_only": True}, ("allow", "other")),
        ("Bash", {}, {}, ("ask", "other")),
    ],
)
def test_other_tools(tool: str, tool_input: dict[str, Any], known: dict[str, Any], expected: tuple[str, str]) -> None:
    """Reading inside the working folders passes; edits pass in acceptEdits, but not where code may run later."""
    answer = decided(tool, tool_input, **known)

    assert (answer.behaviour, answer.reason_type) == expected


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la src",
        "cat a.py | head -3",
        "git status",
        "git log --oneline -5",
        "grep -rn foo src",
        "echo hi",
        "cd src && ls",
        "find . -name '*.py'",
        "wc -l < a.py",
        "ls 2>/dev/null",
        "pwd; date",
        "echo $HOME",
    ],
)
def test_plainly_reading_lines_pass(command: str) -> None:
    """The real CLI runs such lines without asking."""
    assert (bash(command), bash(command, mode="plan")) == ("allow", "allow")


@pytest.mark.parametrize(
    "command",
    [
        "ls > x",
        "cat /etc/passwd",
        "cat ../../x",
        "cat ~/.ssh/id_rsa",
        "cat $x",
        "X=1 ls",
        "./ls",
        "find . -delete",
        "find . -exec rm {} +",
        "git push",
        "git diff --output=x",
        "git -C / log",
        "git",
        "sort -o x y",
        "sort -uo x y",
        "date -s 1",
        "cd src && cat ../../../x",
        "cd - && ls",
        "cd",
        "grep -f/etc/passwd x",
        "grep --file=/etc/passwd x",
        "ls | sh",
        "python -c 1",
        "wc -l < /etc/passwd",
        "x=1",
        "echo $(rm x)",
        "git log -- /etc",
        "tree -o x",
        "fd x -x rm",
    ],
)
def test_lines_that_may_do_more_than_read_ask(command: str) -> None:
    """One doubt is enough."""
    assert bash(command) == "ask"


@pytest.mark.parametrize(
    "command,expected",
    [
        ("mkdir -p src/a && touch src/a/b", "allow"),
        ("cp a b; mv b c; ls", "allow"),
        ("mkdir /etc/x", "ask"),
        ("mv a ../../b", "ask"),
        ("rm a", "allow"),
        ("rm -rf src", "allow"),
        ("rm -rf .", "ask"),
        ("rm -rf ../..", "ask"),
        ("echo hi > a; cat a >> src/b 2> c", "allow"),
        ("echo hi > /etc/x", "ask"),
        ("echo hi > ~/x", "ask"),
        ("echo hi > $x", "ask"),
        ("echo hi > *.txt", "ask"),
        ("echo hi > .git/hooks/x", "ask"),
        ("cd .. && echo hi > a", "ask"),
        ("python3 x.py > a", "ask"),
        ("touch .git/hooks/x", "ask"),
        ("touch a > b", "allow"),
        ("cp --target-directory=/etc a", "ask"),
        ("X=1 touch a", "ask"),
        ("touch $x", "ask"),
    ],
)
def test_accept_edits_reaches_simple_file_commands(command: str, expected: str) -> None:
    """Simple changes inside the working folders pass in acceptEdits, nothing else does."""
    assert bash(command, mode="acceptEdits") == expected


RULES = st.sampled_from(
    ["Bash", "Bash(rm *)", "Bash(git *)", "Bash(ls)", "Read(src/**)", "Write", "Bash(", "Edit(*.py)"]
)
CALLS = st.sampled_from(
    [
        ("Bash", {"command": "git status"}),
        ("Bash", {"command": "rm x"}),
        ("Bash", {"command": "$x"}),
        ("Bash", {"command": "ls"}),
        ("Read", {"file_path": "src/a.py"}),
        ("Write", {"file_path": "src/a.py"}),
        ("Bash", {"command": "git log | sh"}),
    ]
)
LISTS = st.lists(RULES, max_size=3)


@given(LISTS, LISTS, LISTS, RULES, CALLS, st.sampled_from(list(Mode)), st.sampled_from([None, "allow", "ask", "deny"]))
def test_a_further_deny_rule_never_loosens(
    allow: list[str],
    ask: list[str],
    deny: list[str],
    more: str,
    call: tuple[str, dict[str, Any]],
    mode: Mode,
    hook: str | None,
) -> None:
    """Adding a deny or an ask rule, or taking an allow rule away, never makes the answer milder."""
    tool, tool_input = call

    def answer(allow: list[str], ask: list[str], deny: list[str]) -> int:
        known = read_rules({"allow": allow, "ask": ask, "deny": deny})
        return STRICTNESS[decided(tool, tool_input, rules=known, mode=mode, hook_decision=hook).behaviour]

    before = answer(allow, ask, deny)

    assert answer(allow, ask, [*deny, more]) >= before
    assert answer(allow, [*ask, more], deny) >= before
    assert answer([*allow, more], ask, deny) <= before


@given(st.text(max_size=80), st.sampled_from(list(Mode)))
def test_decide_never_raises(command: str, mode: Mode) -> None:
    """Any text may be a command."""
    assert bash(command, mode=mode, rules=rules(allow="Bash(git *)", deny="Bash(rm *)")) in STRICTNESS
