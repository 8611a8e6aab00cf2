"""One settings object → hooks and problems."""

from typing import Any

import pytest

from hookline.core.hooks import AgentCheck, Command, Hook, Http, McpTool, Prompt
from hookline.core.hooks.condition import parse_condition
from hookline.core.hooks.hook import parse_matcher
from hookline.events import PreToolUse, SessionStart, Stop, SubagentStop, UserPromptSubmit
from hookline.settings.files import Problem
from hookline.settings.parse import HttpRules, InAgent, ParsedSettings, parse_hooks
from hookline.settings.sources import SettingsSource

SOURCE = SettingsSource(kind="project", label=".claude/settings.json", path="/p/.claude/settings.json", root="/p")


def parse(table: object, source: SettingsSource = SOURCE, rules: HttpRules | None = None) -> ParsedSettings:
    return parse_hooks(table, source, rules)


def nested(*entries: Any, event: str = "PreToolUse", **group: Any) -> dict[str, Any]:
    return {event: [{**group, "hooks": list(entries)}]}


def test_an_entry_with_every_key_becomes_a_hook() -> None:
    """Every key of the contract and of Hookline's own reaches the hook."""
    entry = {
        "type": "command", "command": "./x.sh", "args": ["a"], "shell": "bash", "onFailure": "block", "async": True,
        "if": "Bash(git *)", "timeout": 2.5, "statusMessage": "Checking", "once": True, "persistent": True,
        "env": {"A": "b"}, "dialect": "spec", "name": "mine", "priority": 7,
    }  # fmt: skip
    parsed = parse(nested(entry, matcher="Bash|Write"))

    assert parsed == ParsedSettings(
        (
            Hook(
                name="mine", events=(PreToolUse,), matcher=parse_matcher("Bash|Write"), timeout=2.5, priority=7,
                condition=parse_condition("Bash(git *)"), on_failure="block", background=True, once=True,
                source=".claude/settings.json: hooks.PreToolUse[0].hooks[0]", status_message="Checking",
                action=Command(
                    command="./x.sh", args=("a",), shell="bash", env={"A": "b"}, asynchronous=True, persistent=True,
                    dialect="spec",
                ),
            ),
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "entry, action",
    [
        ({"type": "prompt", "prompt": "ok? $ARGUMENTS", "model": "m", "continueOnBlock": True},
         Prompt(prompt="ok? $ARGUMENTS", model="m", continue_on_block=True)),
        ({"type": "agent", "prompt": "look", "model": "m"}, AgentCheck(prompt="look", model="m")),
        ({"type": "http", "url": "https://h/x", "headers": {"A": "$T"}, "allowedEnvVars": ["T"]},
         Http(url="https://h/x", headers={"A": "$T"}, allowed_env=("T",))),
        ({"type": "mcp_tool", "server": "db", "tool": "check", "input": {"q": 1}},
         McpTool(server="db", tool="check", input={"q": 1})),
    ],
)  # fmt: skip
def test_every_kind_of_entry_has_its_action(entry: dict[str, Any], action: object) -> None:
    """Prompt, agent, http and mcp_tool entries become the action of that kind, and onFailure works for each."""
    parsed = parse(nested({**entry, "onFailure": "block"}))

    assert (parsed.problems, [(h.action, h.on_failure) for h in parsed.hooks]) == ((), [(action, "block")])


@pytest.mark.parametrize(
    "event, kind, seconds",
    [
        ("PreToolUse", {"type": "command", "command": "x"}, 600),
        ("PreToolUse", {"type": "http", "url": "http://h"}, 600),
        ("PreToolUse", {"type": "prompt", "prompt": "x"}, 30),
        ("PreToolUse", {"type": "agent", "prompt": "x"}, 60),
        ("UserPromptSubmit", {"type": "command", "command": "x"}, 30),
        ("MessageDisplay", {"type": "command", "command": "x"}, 10),
        ("SessionEnd", {"type": "command", "command": "x"}, 1.5),
    ],
)
def test_default_timeouts_are_claude_codes(event: str, kind: dict[str, Any], seconds: float) -> None:
    """An entry that names no timeout has the one Claude Code gives it."""
    [hook] = parse(nested(kind, event=event)).hooks

    assert (hook.timeout, hook.on_failure) == (seconds, "continue")


def test_named_string_and_list_formats_are_read() -> None:
    """The formats of seeds/002: events in camel case, named entries, a string, a list of strings; dialect `snake`."""
    parsed = parse({
        "preToolUse": {"security-check": {"command": "python c.py", "timeout_secs": 30, "matcher": "Bash|Write",
                                          "env": {"X": "1"}}},
        "postToolUse": {"audit-log": "echo $EVENT"},
        "sessionStart": ["notify-send hi", {"command": "b.sh", "priority": 2}],
        "session_end": "cleanup.sh",
    })  # fmt: skip

    assert parsed.problems == ()
    assert [(h.name, h.events[0].event_name, h.matcher.pattern, h.timeout, h.priority) for h in parsed.hooks] == [
        ("security-check", "PreToolUse", "Bash|Write", 30.0, 0),
        ("audit-log", "PostToolUse", "", None, 0),
        ("notify-send", "SessionStart", "", None, 0),
        ("b.sh", "SessionStart", "", None, 2),
        ("cleanup.sh", "SessionEnd", "", None, 0),
    ]
    assert [h.action for h in parsed.hooks][:2] == [
        Command(command="python c.py", env={"X": "1", "EVENT": "pre_tool_use"}, dialect="snake"),
        Command(command="echo $EVENT", env={"EVENT": "post_tool_use"}, dialect="snake"),
    ]


def test_short_formats_work_under_claude_codes_spelling_too() -> None:
    """Which format an entry has is seen from its shape, not from the spelling of the event."""
    parsed = parse({"PreToolUse": {"one": "a.sh"}, "Stop": "b.sh", "SessionStart": ["c.sh"]})

    assert parsed.problems == ()
    assert [(h.name, h.events) for h in parsed.hooks] == [
        ("one", (PreToolUse,)),
        ("b.sh", (Stop,)),
        ("c.sh", (SessionStart,)),
    ]


GOOD = {"type": "command", "command": "good.sh"}
DROPPED, KEPT = "; this hook does not run", "; its default is used"
CLOSED = "; read as `block`, to be on the safe side"
EXAMPLE = '{"type": "command", "command": "./check.sh"}'
BAD: list[tuple[Any, str, str, bool]] = [
    ({"type": "nope", "command": "x"}, ".type",
     'unknown kind of hook `"nope"`; write one of command, prompt, agent, http, mcp_tool, cedar, rego', False),
    ({"type": "comand", "command": "x"}, ".type", 'unknown kind of hook `"comand"`; did you mean `command`?', False),
    ({"type": "command"}, "", '`command` is missing; write `"command": "./check.sh"`', False),
    ({}, "", f"says nothing to run; write `{EXAMPLE}`", False),
    (5, "", f"expected an object, got `5`; write `{EXAMPLE}`", False),
    ({**GOOD, "command": ""}, ".command", f'expected a command, got `""`; write `"./check.sh"`{DROPPED}', False),
    ({**GOOD, "command": 3}, ".command", f'expected a command, got `3`; write `"./check.sh"`{DROPPED}', False),
    ({**GOOD, "args": "x"}, ".args", f'expected a list of texts, got `"x"`; write `["--strict"]`{DROPPED}', False),
    ({**GOOD, "timeout": "30s"}, ".timeout", f'expected seconds, got `"30s"`; write `30`{KEPT}', True),
    ({**GOOD, "timeout": 0}, ".timeout", f"expected seconds, got `0`; write `30`{KEPT}", True),
    ({**GOOD, "timeout": -1}, ".timeout", f"expected seconds, got `-1`; write `30`{KEPT}", True),
    ({**GOOD, "timeout": True}, ".timeout", f"expected seconds, got `true`; write `30`{KEPT}", True),
    ({**GOOD, "statusMessage": 5}, ".statusMessage", f'expected a text, got `5`; write `"Checking…"`{KEPT}', True),
    ({**GOOD, "onFailure": "stop"}, ".onFailure",
     f'expected `"continue"` or `"block"`, got `"stop"`; write `"block"`{CLOSED}', True),
]  # fmt: skip


@pytest.mark.parametrize("entry, at, message, runs", BAD)
def test_one_bad_entry_never_disables_the_others(entry: Any, at: str, message: str, runs: bool) -> None:
    """The problem names file and key path and says what to write; the hooks around it run."""
    parsed = parse({"PreToolUse": [{"hooks": [GOOD, entry, {"type": "http", "url": "http://h"}]}]})

    assert parsed.problems == (Problem(f".claude/settings.json: hooks.PreToolUse[0].hooks[1]{at}", message, "error"),)
    assert len(parsed.hooks) == (3 if runs else 2)


def test_a_wrong_on_failure_fails_closed() -> None:
    """FACTS §10: an unknown onFailure is read as block."""
    [hook] = parse(nested({**GOOD, "onFailure": "stop"})).hooks

    assert hook.on_failure == "block"


@pytest.mark.parametrize(
    "table, where, message",
    [
        ([], "hooks", 'expected an object of events, got `[]`; write `{"PreToolUse": […]}`'),
        ({"PreToolUse": 5}, "hooks.PreToolUse", 'expected a list, got `5`; write `[{"hooks": […]}]`'),
        ({"PreToolUse": [5]}, "hooks.PreToolUse[0]",
         'expected an object with `hooks`, got `5`; write `{"hooks": […]}`'),
        ({"PreToolUse": [{"hooks": "x"}]}, "hooks.PreToolUse[0].hooks",
         'expected a list, got `"x"`; write `[{"type": "command", …}]`'),
        ({"PreToolUse": [GOOD]}, "hooks.PreToolUse[0]",
         'this entry stands one level too high; write `{"hooks": [{"type": "command", …}]}`'),
        ({"PreToolUse": {"hooks": [GOOD]}}, "hooks.PreToolUse",
         'expected a list of groups, got one group; write `[{"hooks": […]}]`'),
        ({"preToolUse": {"a": 5}}, "hooks.preToolUse.a", 'expected a command, got `5`; write `"./check.sh"`'),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_named_and_the_right_one_shown(table: Any, where: str, message: str) -> None:
    """Whatever stands where a table, group or entry should, the rest is read."""
    rest = {"Stop": [{"hooks": [GOOD]}]} if isinstance(table, dict) else {}
    parsed = parse({**table, **rest} if rest else table)

    assert parsed.problems == (Problem(f".claude/settings.json: {where}", message),)
    assert len(parsed.hooks) == len(rest)


def test_unknown_events_and_misspelled_keys_are_errors_with_the_near_ones() -> None:
    """They are ignored in Claude Code (`bad_event`, `bad_extra_field`); here somebody is told."""
    parsed = parse({
        "PreTolUse": [{"hooks": [GOOD]}],
        "preToolUse": [{"hooks": [GOOD]}],
        "PreToolUse": [{"matchr": "Bash", "hooks": [{**GOOD, "timout": 5, "_comment": "fine"}]}],
        "$schema": "fine",
    })  # fmt: skip

    assert [(p.where.partition(": ")[2], p.severity) for p in parsed.problems] == [
        ("hooks.PreTolUse", "error"),
        ("hooks.preToolUse[0]", "error"),
        ("hooks.PreToolUse[0].matchr", "error"),
        ("hooks.PreToolUse[0].hooks[0].timout", "error"),
    ]
    assert "did you mean `PreToolUse`" in parsed.problems[0].message
    assert parsed.problems[3].message == "unknown key `timout` is ignored; did you mean `timeout`?"
    assert len(parsed.hooks) == 1


@pytest.mark.parametrize("matcher", ["[", "(Bash", "(?i)bash", 5, ["Bash"], {}])
def test_an_invalid_matcher_is_a_problem_and_matches_nothing(matcher: Any) -> None:
    """FACTS §5: it matches nothing there, silently; here the position is named."""
    parsed = parse({"PreToolUse": [{"matcher": matcher, "hooks": [GOOD]}, {"hooks": [{**GOOD, "command": "b"}]}]})

    assert [p.where for p in parsed.problems] == [".claude/settings.json: hooks.PreToolUse[0].matcher"]
    assert [h.matcher.matches("Bash") for h in parsed.hooks] == [False, True]


def test_an_invalid_condition_is_a_problem_and_never_holds() -> None:
    """FACTS §5: broken syntax never matches; an empty text is no condition."""
    parsed = parse(nested({**GOOD, "if": "Bash("}, {**GOOD, "if": 5}, {**GOOD, "if": ""}))

    assert [p.where.rpartition(".")[0] for p in parsed.problems] == [
        ".claude/settings.json: hooks.PreToolUse[0].hooks[0]",
        ".claude/settings.json: hooks.PreToolUse[0].hooks[1]",
    ]
    event = PreToolUse(tool_name="Bash", tool_input={"command": "ls"})
    assert [h.when is None or h.when(event) for h in parsed.hooks] == [False, False, True]


def test_a_condition_on_an_event_without_a_tool_is_a_warning() -> None:
    """FACTS §5: such a hook never runs, so somebody is told."""
    parsed = parse(nested({**GOOD, "if": "Bash(git *)"}, event="UserPromptSubmit"))

    assert [(p.severity, h.events) for p, h in zip(parsed.problems, parsed.hooks, strict=True)] == [
        ("warning", (UserPromptSubmit,))
    ]


def test_an_entry_without_type_is_read_by_its_keys_with_a_warning() -> None:
    """What is plainly meant runs."""
    parsed = parse(nested({"command": "x"}, {"url": "http://h"}, {"prompt": "p"}))

    assert [type(h.action) for h in parsed.hooks] == [Command, Http, Prompt]
    assert [p.severity for p in parsed.problems] == ["warning"] * 3


def test_plugin_variables_are_filled_in() -> None:
    """FACTS §9: `${CLAUDE_PLUGIN_ROOT}` is replaced in the command; the unbraced form is left to the shell."""
    source = SettingsSource(kind="plugin", label="plug", path="/plug/hooks/hooks.json", root="/plug",
                            plugin="plug@inline", plugin_data="/data")  # fmt: skip
    [shell, execute] = parse(
        nested(
            {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/a.sh $CLAUDE_PLUGIN_ROOT ${CLAUDE_PLUGIN_DATA}"},
            {"type": "command", "command": "x", "args": ["${CLAUDE_PLUGIN_ROOT}/b"]},
        ),
        source,
    ).hooks

    where = {"plugin_root": "/plug", "plugin_data": "/data", "plugin": "plug@inline"}
    assert shell.action == Command(command="/plug/a.sh $CLAUDE_PLUGIN_ROOT /data", **where)  # type: ignore[arg-type]
    assert execute.action == Command(command="x", args=("/plug/b",), **where)  # type: ignore[arg-type]
    assert (shell.name, execute.name) == ("plug:a.sh", "plug:x")


def test_stop_in_an_agents_header_is_the_end_of_that_agent() -> None:
    """FACTS §9: Stop is SubagentStop too, unless the session itself is that agent; hooks apply only while it runs."""
    source = SettingsSource(kind="agent", label=".claude/agents/rev.md", owner="rev")
    stop, before = parse({**nested(GOOD, event="Stop"), **nested(GOOD)}, source).hooks

    assert (stop.events, stop.when, before.events) == ((SubagentStop, Stop), InAgent("rev"), (PreToolUse,))
    assert before.when is not None
    assert [before.when(PreToolUse(tool_name="Bash", tool_input={}, agent_type=a)) for a in ("rev", "other", None)] == [
        True, False, False,
    ]  # fmt: skip


def test_http_rules_reach_the_hook() -> None:
    """`allowedHttpHookUrls` restricts the URL, `httpHookAllowedEnvVars` what headers may name."""
    entry = {"type": "http", "url": "http://h", "allowedEnvVars": ["A", "B"]}
    [hook] = parse(nested(entry), rules=HttpRules(("https://x/*",), ("B", "C"))).hooks

    assert hook.action == Http(url="http://h", allowed_env=("B",), allowed_urls=("https://x/*",))


def test_an_http_hook_may_have_a_body_of_its_own() -> None:
    """What is not an object drops the hook."""
    entry = {"type": "http", "url": "http://h", "body": {"text": "${tool_name}"}}
    [hook] = parse(nested(entry)).hooks

    assert hook.action == Http(url="http://h", body={"text": "${tool_name}"})
    assert parse(nested({**entry, "body": "text"})).hooks == ()


def test_async_rewake_is_left_to_the_host() -> None:
    """FACTS §7: in a plain run it is synchronous; a host that can wake the model turns `background` on."""
    both, rewake = parse(nested({**GOOD, "async": True}, {**GOOD, "asyncRewake": True})).hooks

    assert (both.background, rewake.background) == (True, False)
    assert isinstance(rewake.action, Command)
    assert rewake.action.async_rewake


def test_an_if_may_list_several_rules() -> None:
    """One of them has to hold; a broken one among them never lets the hook run."""
    parsed = parse(nested({**GOOD, "if": ["Bash(git *)", "Edit"]}, {**GOOD, "if": ["Bash(git *)", "Edit("]}))

    both, broken = parsed.hooks
    assert str(both.condition) == "Bash(git *) | Edit"
    assert (broken.condition, len(parsed.problems)) == (None, 1)


@pytest.mark.parametrize("event", ["preToolUse", "pre_tool_use"])
def test_a_group_under_a_short_spelling_leaves_its_siblings_alone(event: str) -> None:
    """Claude Code's groups want its own spelling; what stands beside one was written in the short way, and counts."""
    listed = parse({event: ["./a", {"hooks": [GOOD]}, {"command": "./b"}]})
    named = parse({event: {"hooks": [GOOD], "first": {"command": "./a"}, "second": {"command": "./b"}}})

    for parsed in (listed, named):
        assert [getattr(hook.action, "command", None) for hook in parsed.hooks] == ["./a", "./b"]
        assert [problem.severity for problem in parsed.problems] == ["error"]


def test_what_a_hook_says_when_it_wakes_the_agent_is_read() -> None:
    """`rewakeMessage` and `rewakeSummary`; one that is not a text is left out, and told."""
    parsed = parse(nested({**GOOD, "asyncRewake": True, "rewakeMessage": "Look:", "rewakeSummary": 5}))
    (hook,) = parsed.hooks

    assert isinstance(hook.action, Command)
    assert (hook.action.rewake_message, hook.action.rewake_summary) == ("Look:", "")
    assert "rewakeSummary" in parsed.problems[0].where
