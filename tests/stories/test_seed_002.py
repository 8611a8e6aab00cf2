"""seeds/002 in our words: hook objects with priorities, a manager that merges, settings by name, hooks from a tool."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from hookline import Context, Decision, Hooks, Reply, Verdict, context, deny, message, rewrite, stop
from hookline.agent.tools import Tool, ToolEnv, ToolResult
from hookline.core.wire.dialects import DIALECTS
from hookline.events import (
    CATALOG,
    Event,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SessionStart,
    SubagentStart,
    SubagentStop,
)
from hookline.settings import parse_hooks
from hookline.settings.check import check_hooks
from hookline.settings.files import read_markdown
from hookline.settings.sources import SettingsSource
from hookline.testing import assert_denied, assert_passed, bash, succeeded
from tests.agent.driving import agent_on
from tests.agent.driving import bash as bash_turn

EVENTS = (
    "PreToolUse PostToolUse PostToolUseFailure UserPromptSubmit Stop SubagentStart SubagentStop PreCompact "
    "SessionStart SessionEnd"
)


class SecurityHook:
    """The seed's: an object with a name, events, a priority and `execute`."""

    name = "security-hook"
    events: ClassVar = [PreToolUse]
    priority = 100
    timeout_secs = 60

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns

    async def execute(self, event: PreToolUse, ctx: Context) -> Reply | None:
        found = next((pattern for pattern in self._patterns if pattern in (event.command or "")), None)
        return deny(f"Blocked: contains '{found}'") if found else None


class LoggingHook:
    """Notes every tool event; `HookOutput::allow()` is `None` here."""

    name = "logging-hook"
    events: ClassVar = [PreToolUse, PostToolUse, PostToolUseFailure]

    async def execute(self, event: Event, ctx: Context) -> None:
        ctx.log.info("%s %s", event.event_name, event.tool_name)


class SubagentMonitorHook:
    """Sees subagents come and go."""

    def __init__(self) -> None:
        self._seen: list[Any] = []

    name = "subagent-monitor"
    events: ClassVar = ["SubagentStart", "SubagentStop"]

    async def execute(self, event: SubagentStart | SubagentStop, ctx: Context) -> None:
        outcome = (event.success, event.error) if isinstance(event, SubagentStop) else event.description
        self._seen.append((event.event_name, event.agent_id, outcome))


def test_the_ten_events_and_which_of_them_can_block() -> None:
    """As the seed's table has it."""
    can = {name for name in EVENTS.split() if CATALOG[name].gate}
    assert can >= {"PreToolUse", "UserPromptSubmit", "SubagentStart", "SessionStart"}
    assert can.isdisjoint({"PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionEnd"})


def test_the_security_hook_blocks_before_others_run() -> None:
    """Higher priority runs first; the manager's `execute` is `fire`."""
    hooks = Hooks()
    hooks.add(LoggingHook())
    hooks.add(SecurityHook("rm -rf", "sudo"))

    assert [hook.name for hook in hooks.hooks] == ["security-hook", "logging-hook"]
    verdict = hooks.fire_sync(bash("sudo ls"))
    assert_denied(verdict, by="security-hook", reason="Blocked: contains 'sudo'")
    assert verdict.blocked
    assert_passed(hooks.fire_sync(bash("ls")))


def test_the_logging_hook_logs(caplog: pytest.LogCaptureFixture) -> None:
    """And says nothing else: no objection is not a permission."""
    hooks = Hooks()
    hooks.add(LoggingHook())
    with caplog.at_level(logging.INFO, "hookline.hook.logging-hook"):
        verdict = hooks.fire_sync(succeeded(bash("ls")))

    assert "PostToolUse Bash" in caplog.text
    assert verdict.decision is Decision.PASS


async def test_the_subagent_monitor_sees_both_ends(tmp_path: Path) -> None:
    """With the agent's id, what it was for, and how it ended."""
    hooks, monitor = Hooks(), SubagentMonitorHook()
    hooks.add(monitor)
    spawn = {"tools": [["Agent", {"description": "look", "prompt": "SUB", "run_in_background": False}]]}
    async with agent_on(
        tmp_path, spawn, "done", hooks=hooks, lanes={"sub": {"first": "^SUB", "turns": [{"text": "ok"}]}}
    ) as agent:
        await agent.run("go")

    (start, begun, what), (end, ended, how) = monitor._seen
    assert (start, what, end, how) == ("SubagentStart", "look", "SubagentStop", (True, None))
    assert begun == ended


def test_events_are_typed_and_answer_for_what_they_do_not_have() -> None:
    """`HookInput::session_start(…)` is a class; `tool_name()` of an event without a tool is `None`."""
    start = SessionStart(session_id="session-1")

    assert (start.event_name, start.tool_name, start.agent_id) == ("SessionStart", None, None)
    assert start.timestamp <= datetime.now(UTC)
    assert bash("ls").tool_name == "Bash"


def test_outputs_are_built_from_replies() -> None:
    """`HookOutput::block("…").context("…")` and its other builders."""
    built = deny("no") | context("C") | message("M") | rewrite({"command": "ls"}) | Reply(suppress_output=True)

    assert (built.reason, built.context, built.messages) == ("no", ("C",), ("M",))
    assert (built.input, built.suppress_output) == ({"command": "ls"}, True)


def test_outputs_merge() -> None:
    """Any block blocks; the latest input counts, context is joined. Where we keep every reason, the seed keeps one."""
    first, second = context("a") | rewrite({"command": "1"}), context("b") | rewrite({"command": "2"})
    merged = first | second | deny("no")

    assert (merged.decision, merged.context, merged.input) == (Decision.DENY, ("a", "b"), {"command": "2"})
    assert (deny("x") | deny("y")).reasons == ("x", "y")


def test_settings_name_their_hooks() -> None:
    """By name, as a command, or as a list of commands; these speak `snake`."""
    table = {
        "preToolUse": {"security-check": {"command": "python check.py", "timeout_secs": 30, "matcher": "Bash|Write"}},
        "postToolUse": {"audit-log": 'echo \'{"event":"$EVENT"}\' >> audit.log'},
        "sessionStart": ["notify-send 'Session started'"],
        "sessionEnd": ["cleanup-temp.sh"],
    }
    source = SettingsSource(kind="project", label="settings.json", path="settings.json", root=".")
    parsed = parse_hooks(table, source)

    assert [problem for problem in parsed.problems if problem.severity == "error"] == []
    check, log, *_ = parsed.hooks
    assert (check.name, check.timeout, check.matcher.pattern) == ("security-check", 30, "Bash|Write")
    assert (log.name, len(parsed.hooks)) == ("audit-log", 4)
    assert {hook.action.dialect for hook in parsed.hooks} == {"snake"}  # type: ignore[union-attr]


def test_a_ported_matcher_that_misses_multi_edit_is_warned_about() -> None:
    """The seed searches `Write|Edit` in the tool's name; here the names are exact."""
    source = SettingsSource(kind="project", label="settings.json", path="settings.json", root=".")

    def warned(matcher: str, **more: Any) -> bool:
        table = {"preToolUse": {"check": {"command": "true", "matcher": matcher, **more}}}
        problems = check_hooks(parse_hooks(table, source).hooks, ".")
        return any("MultiEdit" in problem.message for problem in problems)

    assert [warned("Write|Edit"), warned("Write|Edit|MultiEdit"), warned("Edit$"), warned("Bash")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_the_command_interface() -> None:
    """The payload of the sample is an event; its answer blocks, and nothing printed is no objection."""
    payload = {"event": "pre_tool_use", "session_id": "abc-123", "tool_name": "Bash",
               "tool_input": {"command": "rm -rf /"}}  # fmt: skip
    snake = DIALECTS["snake"]
    event = snake.decode_event(payload)
    answer = {"continue_execution": False, "stop_reason": "Dangerous command blocked", "updated_input": None}

    assert event == PreToolUse(session_id="abc-123", tool_name="Bash", tool_input={"command": "rm -rf /"})
    assert snake.decode_reply(answer, event) == deny("Dangerous command blocked")
    assert snake.decode_reply("", event) == Reply()
    assert snake.decode_reply({"system_message": "careful"}, event) == context("careful")
    assert snake.decode_reply({"continue_execution": False}, "PostToolUse") == stop()


def test_the_context_says_where_and_when() -> None:
    """`HookContext`: session, folder, environment, cancellation."""
    seen: list[Any] = []

    async def look(event: PreToolUse, ctx: Context) -> None:
        seen.append((ctx.session_id, ctx.cwd, ctx.env["NAME"], ctx.cancelled.is_set()))

    hooks = Hooks(env={"NAME": "value"})
    hooks.add(look)
    hooks.fire_sync(PreToolUse(session_id="s", cwd="/p", tool_name="Bash"))
    assert seen == [("s", "/p", "value", False)]


async def test_an_agent_is_given_hooks(tmp_path: Path) -> None:
    """`Agent::builder().hook(…)`: a denied command does not run."""
    hooks = Hooks()
    hooks.add(SecurityHook("touch"), LoggingHook())
    async with agent_on(tmp_path, bash_turn("touch made"), "done", hooks=hooks) as agent:
        await agent.run("go")

    assert not (tmp_path / "made").exists()


class Announce(Tool):
    """A tool of your own that fires an event: `ExecutionContext::fire_hook`."""

    name = "Announce"
    description = "Says that a subagent begins."

    class Input(msgspec.Struct, frozen=True):
        about: str

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        assert env.fire is not None
        about = {"agent_id": "a1", "agent_type": "helper", "description": given["about"]}
        verdict: Verdict = await env.fire(SubagentStart(session_id=env.session_id, cwd=env.cwd, **about))
        return ToolResult(verdict.reason if verdict.blocked else "announced", is_error=verdict.blocked)


async def test_a_tool_fires_hooks(tmp_path: Path) -> None:
    """And acts on the verdict."""
    hooks, monitor = Hooks(), SubagentMonitorHook()
    hooks.add(monitor)
    call = {"tools": [["Announce", {"about": "look around"}]]}
    async with agent_on(
        tmp_path, call, "done", hooks=hooks, tools={"Announce": Announce()}, permission_mode="bypassPermissions"
    ) as agent:
        await agent.run("go")

    assert monitor._seen == [("SubagentStart", "a1", "look around")]


def test_rules_in_headers_and_plugins_are_read(tmp_path: Path) -> None:
    """`HookRule` and `HookAction`: the same table in a header and in a plugin's `hooks.json`."""
    page = tmp_path / "SKILL.md"
    page.write_text("---\nhooks:\n  PreToolUse:\n    - matcher: \"Write|Edit\"\n      hooks:\n        - type: command\n"
                    "          command: scripts/format.sh\n          timeout: 10\n---\nText.\n")  # fmt: skip
    table = {"PostToolUse": [{"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "fmt.sh"}]}]}
    source = SettingsSource(kind="skill", label="s", path=str(page), root=str(tmp_path))

    (header,) = parse_hooks(read_markdown(page).header["hooks"], source).hooks
    (plugin,) = parse_hooks(table, source).hooks
    assert (header.matcher.pattern, header.timeout, plugin.events) == ("Write|Edit", 10, (PostToolUse,))
