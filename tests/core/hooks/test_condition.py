"""Rules such as `Bash(git *)`: the measured tables, and the three readings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.core.hooks.condition import Condition, PathContext, Rule, RuleMatch, advice, covers, parse_rule, read_rule
from hookline.errors import ConditionError

PROJECT = "/home/u/proj"
PLACE = PathContext(PROJECT, PROJECT, "/home/u")
COMMANDS = [
    "git status",
    "echo a && git push",
    "FOO=1 git status",
    "echo $(git push)",
    "echo x | git log",
    "gitk",
    "git",
    'echo "git push"',
    "(git push)",
    "if true; then git push; fi",
    "ls",
]
GIT = {0, 1, 2, 3, 4, 6, 8, 9}
PUSH = {1, 3, 8, 9}
IF_BASH = {
    "Bash": set(range(11)),
    "Bash(*)": set(range(11)),
    "Bash(git *)": GIT,
    "Bash(git:*)": GIT,
    "Bash(git push)": PUSH,
    "Bash(git push *)": PUSH,
    "Bash(git push:*)": PUSH,
    "Bash(git*)": GIT | {5},
    "Bash(echo *)": {1, 3, 4, 7},
    "Bash(ls)": {3, 10},
    "Write": set(),
    "Bash(": set(),
    "bash(git *)": set(),
    "*": set(),
    "Bash(* push)": PUSH | {7},
    "Bash(git *)|Bash(ls)": {3},
    "!Bash(git *)": set(),
}
IF_FILES = {
    "Write": {"src/a.ts", "b.ts", "c.py"},
    "Write(*.ts)": {"src/a.ts", "b.ts"},
    "Edit(*.ts)": set(),
    "Write(src/**)": {"src/a.ts"},
    "Write(/src/**)": {"src/a.ts"},
    "Write(./src/*)": {"src/a.ts"},
    f"Write(/{PROJECT}/src/**)": {"src/a.ts"},
    f"Write(//{PROJECT}/src/**)": {"src/a.ts"},
    "Write(**/*.ts)": {"src/a.ts", "b.ts"},
    "Read(*.ts)": set(),
    "Edit": set(),
    "Write(a.ts)": {"src/a.ts"},
    "Write(src/a.ts)": {"src/a.ts"},
    "Write(~/proj/*.py)": {"c.py"},
    "Write(src)": {"src/a.ts"},
    "Write(src/)": {"src/a.ts"},
    "Write([ab].ts)": {"src/a.ts", "b.ts"},
    "Write([!a].ts)": {"b.ts"},
    "Write(?.py)": {"c.py"},
    "Write(\\c.py)": {"c.py"},
    "Write([z-a].ts)": set(),
    "Write([c.py)": set(),
    "Write(\\)": set(),
    "Bash(git *)": set(),
}


def matches(rule: str, tool: str, tool_input: dict[str, object]) -> bool:
    """Whether a hook with this `if` runs."""
    return read_rule(rule).matches(tool, tool_input, PLACE)


@pytest.mark.parametrize("rule, expected", IF_BASH.items())
def test_if_over_commands_as_measured(rule: str, expected: set[int]) -> None:
    """The table of the case `if_bash`, cell by cell."""
    found = {index for index, command in enumerate(COMMANDS) if matches(rule, "Bash", {"command": command})}

    assert found == expected


@pytest.mark.parametrize("rule, expected", IF_FILES.items())
def test_if_over_paths_as_measured(rule: str, expected: set[str]) -> None:
    """The table of the case `if_files`, and the other forms of a pattern."""
    files = ["src/a.ts", "b.ts", "c.py"]

    assert {name for name in files if matches(rule, "Write", {"file_path": f"{PROJECT}/{name}"})} == expected


@pytest.mark.parametrize(
    "rule, tool, tool_input, expected",
    [
        ("mcp__srv__echo", "mcp__srv__echo", {"text": "T"}, True),
        ("mcp__srv__echo(*)", "mcp__srv__echo", {"text": "T"}, True),
        ("mcp__srv__echo(T)", "mcp__srv__echo", {"text": "T"}, False),
        ("mcp__srv", "mcp__srv__echo", {"text": "T"}, False),
        ("mcp__srv__*", "mcp__srv__echo", {"text": "T"}, False),
        ("mcp__*", "mcp__srv__echo", {"text": "T"}, False),
        ("Agent", "Agent", {"subagent_type": "general-purpose"}, True),
        ("Task", "Agent", {"subagent_type": "general-purpose"}, True),
        ("Agent", "Task", {}, True),
        ("Agent(general-purpose)", "Agent", {"subagent_type": "general-purpose"}, False),
        ("Task(general-purpose)", "Agent", {"subagent_type": "general-purpose"}, False),
        ("Write(*.ts)", "Write", {}, False),
        ("Write(*.ts)", "Write", {"file_path": 3}, False),
        ("Write(*.ts)", "Write", {"file_path": "src/../b.ts"}, True),
        ("Write(*.ts)", "Write", {"file_path": "/elsewhere/b.ts"}, True),
        ("Write(*.TS)", "Write", {"file_path": "src/b.ts"}, True),
        ("Write(?.ts)", "Write", {"file_path": "/elsewhere/b.ts"}, False),
        ("Write(/**)", "Write", {"file_path": "/elsewhere/b.ts"}, False),
        ("Write(/elsewhere/b.ts)", "Write", {"file_path": "/elsewhere/b.ts"}, True),
        ("Write()", "Write", {"file_path": "/elsewhere/b.ts"}, True),
        ("Write(//etc/**)", "Write", {"file_path": "../../../etc/passwd"}, True),
        ("Write(~/.ssh/**)", "Write", {"file_path": "~/.ssh/id"}, True),
        ("Bash(ls)", "Bash", {"command": None}, False),
        ("Bash(rm *)", "Bash", {"command": "$x y"}, True),
        ("Grep(src/**)", "Grep", {"path": "src/a"}, True),
        ("Grep(src/**)", "Grep", {"pattern": "x"}, False),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com/x"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com.evil.io/"}, False),
        ("WebFetch(domain:*.example.com)", "WebFetch", {"url": "https://a.example.com/"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://user@EXAMPLE.com.:8/"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "example.com/x"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "http://[bad"}, False),
        ("WebFetch(example.com)", "WebFetch", {"url": "https://example.com"}, False),
        ("Bash(git -c \\*)", "Bash", {"command": "git -c '*'"}, True),
        ("Bash(git -c \\*)", "Bash", {"command": "git -c x"}, False),
    ],
)
def test_if_on_other_tools(rule: str, tool: str, tool_input: dict[str, object], expected: bool) -> None:
    """The cases `if_mcp` and `if_agent_alias`, and the fields of the other tools."""
    assert matches(rule, tool, tool_input) is expected


@pytest.mark.parametrize(
    "text, position",
    [("Bash(", 4), ("*", 0), ("!Bash(git *)", 0), ("Ba sh", 2), ("", 0), ("(x)", 0), ("Bash(x) y", 4)],
)
def test_a_broken_rule_says_where(text: str, position: int) -> None:
    """The error names the place, and the lenient reading keeps it as a value."""
    with pytest.raises(ConditionError) as caught:
        parse_rule(text)

    assert caught.value.position == position
    assert read_rule(text).problem == str(caught.value)


@pytest.mark.parametrize(
    "text, said",
    [
        ("Bash(git *)", ""),
        ("mcp__a__b", ""),
        ("mcp__a__b(*)", ""),
        ("Custom", ""),
        ("bash", "no tool is called `bash`; did you mean `Bash`?"),
        ("mcp__a", "`mcp__a` never matches; write the tool's whole name, such as `mcp__server__tool`"),
        ("mcp__a__b(x)", "`mcp__a__b(x)` never matches; an MCP tool takes no pattern but `*`"),
        ("Agent(Explore)", "`Agent(Explore)` never matches; `Agent` takes no pattern here"),
        ("Custom(x)", "`Custom(x)` never matches; `Custom` takes no pattern here"),
        ("Bash(", "condition `Bash(`: `(` is never closed at position 4; write `Tool` or `Tool(pattern)`"),
    ],
)
def test_advice_names_rules_that_never_match(text: str, said: str) -> None:
    """`hookline check` can tell a rule that will never hold."""
    assert advice(read_rule(text)) == said


@pytest.mark.parametrize(
    "rule, tool, tool_input, expected",
    [
        ("Bash(rm *)", "Bash", {"command": "ls; sudo rm -rf x"}, RuleMatch.YES),
        ("Bash(rm *)", "Bash", {"command": "/bin/rm x"}, RuleMatch.YES),
        ("Bash(rm *)", "Bash", {"command": "echo $(rm x)"}, RuleMatch.YES),
        ("Bash(rm *)", "Bash", {"command": "echo $(date)"}, RuleMatch.NO),
        ("Bash(rm *)", "Bash", {"command": "$x y"}, RuleMatch.MAYBE),
        ("Bash(rm -rf *)", "Bash", {"command": "rm $flags x"}, RuleMatch.MAYBE),
        ("Bash(rm -rf *)", "Bash", {"command": "rm x $y"}, RuleMatch.NO),
        ("Bash(git push --force)", "Bash", {"command": "git push $x"}, RuleMatch.MAYBE),
        ("Bash(git push)", "Bash", {"command": "git push $x"}, RuleMatch.MAYBE),
        ("Bash(git p* --force)", "Bash", {"command": "git $x $y --force"}, RuleMatch.MAYBE),
        ("Bash(git push)", "Bash", {"command": "ls $x"}, RuleMatch.NO),
        ("Bash(rm *)", "Bash", {"command": "echo hi | sh"}, RuleMatch.MAYBE),
        ("Bash(rm *)", "Bash", {"command": 3}, RuleMatch.NO),
        ("Bash(rm *)", "Bash", {"command": "x=1"}, RuleMatch.NO),
        ("Bash", "Bash", {"command": "ls"}, RuleMatch.YES),
        ("Bash", "Read", {"file_path": "x"}, RuleMatch.NO),
        ("Edit(src/**)", "Write", {"file_path": "src/x"}, RuleMatch.YES),
        ("Edit", "Write", {"file_path": "src/x"}, RuleMatch.NO),
        ("Read(.env)", "Grep", {"path": ".env"}, RuleMatch.YES),
        ("Read(.env)", "Read", {"file_path": "a"}, RuleMatch.NO),
        ("Agent(Explore)", "Task", {"subagent_type": "Explore"}, RuleMatch.YES),
        ("mcp__srv", "mcp__srv__echo", {}, RuleMatch.YES),
        ("mcp__srv__*", "mcp__srv__echo", {}, RuleMatch.YES),
        ("mcp__srv", "mcp__srv2__echo", {}, RuleMatch.NO),
        ("mcp__srv__echo(x)", "mcp__srv__echo", {}, RuleMatch.NO),
        ("Bash(", "Bash", {"command": "ls"}, RuleMatch.NO),
    ],
)
def test_a_deny_rule_catches_any_part(rule: str, tool: str, tool_input: dict[str, object], expected: RuleMatch) -> None:
    """One part of the call under the rule is enough; doubt is said, not swallowed."""
    assert read_rule(rule).catches(tool, tool_input, PLACE) is expected


@pytest.mark.parametrize(
    "rules, tool, tool_input, expected",
    [
        (["Bash(git *)"], "Bash", {"command": "git status"}, "Bash(git *)"),
        (["Bash(git *)"], "Bash", {"command": "git status && rm x"}, None),
        (["Bash(git *)", "Bash(ls *)"], "Bash", {"command": "git status && ls"}, "Bash(git *)"),
        (["Bash(git *)"], "Bash", {"command": "timeout 5 git status"}, "Bash(git *)"),
        (["Bash(git *)"], "Bash", {"command": "sudo git status"}, None),
        (["Bash(git *)"], "Bash", {"command": "/tmp/git status"}, None),
        (["Bash(git *)"], "Bash", {"command": "./timeout 5 git status"}, None),
        (["Bash(git *)"], "Bash", {"command": "git log $(rm x)"}, None),
        (["Bash(git *)"], "Bash", {"command": "git log $x"}, "Bash(git *)"),
        (["Bash(git log)"], "Bash", {"command": "git $x"}, None),
        (["Bash(git *)"], "Bash", {"command": "git log > /etc/passwd"}, None),
        (["Bash(git *)"], "Bash", {"command": "git log > /dev/null 2>&1"}, "Bash(git *)"),
        (["Bash(git *)"], "Bash", {"command": "X=1 git log; > y"}, None),
        (["Bash(git *)"], "Bash", {"command": "PATH=/tmp git log"}, None),
        (["Bash(git *)"], "Bash", {"command": "git log | sh"}, None),
        (["Bash(git *)"], "Bash", {"command": ""}, None),
        (["Bash(git *)"], "Bash", {"command": "x=1"}, None),
        (["Bash(echo $(date))"], "Bash", {"command": "echo $(date)"}, "Bash(echo $(date))"),
        (["Bash"], "Bash", {"command": "git log | sh"}, "Bash"),
        (["Read"], "Bash", {"command": "ls"}, None),
        (["Write(src/**)"], "Write", {"file_path": "src/x"}, "Write(src/**)"),
        (["Write(src/**)"], "Write", {"file_path": "src/../x"}, None),
        (["Custom(x)"], "Custom", {}, None),
        (["Skill(pdf)"], "Skill", {"skill": "pdf"}, "Skill(pdf)"),
    ],
)
def test_allow_rules_cover_every_part_or_nothing(
    rules: list[str], tool: str, tool_input: dict[str, object], expected: str | None
) -> None:
    """An allow rule never lets a part through that no rule names."""
    found = covers([read_rule(rule) for rule in rules], tool, tool_input, PLACE)

    assert (found and str(found)) == expected


def test_a_rule_prints_as_it_was_written() -> None:
    """People recognise their own words."""
    assert str(parse_rule("Task(x)")) == "Task(x)"


@given(st.text(max_size=40), st.sampled_from(["Bash", "Write", "WebFetch", "Agent"]), st.text(max_size=60))
def test_matching_never_raises(rule: str, tool: str, value: str) -> None:
    """Any text is a rule or a rule with a problem, and any call can be held against it."""
    for read in (read_rule(rule), Rule(rule, tool, rule)):
        call = {"command": value, "file_path": value, "url": value, "subagent_type": value}
        caught = read.catches(tool, call, PLACE)
        covered = covers([read], tool, call, PLACE)

        assert covered is None or caught is RuleMatch.YES


def test_rules_are_shown_as_they_were_written() -> None:
    """Of several rules, any may match."""
    git, typo = parse_rule("Bash(git *)"), parse_rule("Bsh(git *)")

    assert str(Condition((git, typo))) == "Bash(git *) | Bsh(git *)"
    assert advice(git) == ""
    assert advice(typo) != ""
