"""seeds/003 in our words: fifteen events with their fields, outputs, and how results are processed.

The lifecycle of §7 is played in `tests/agent/session/test_lifecycle.py`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hookline import Command, Decision, HookEvent, Hooks, allow, background, context, deny, keep_going
from hookline.core.wire.dialects import DIALECTS
from hookline.events import CATALOG, PreToolUse, Stop
from hookline.testing import bash, fire_sync, tool
from tests.agent.driving import agent_on, reminders, requests_of

FIELDS = {
    "PreToolUse": "tool_name tool_input tool_use_id",
    "PostToolUse": "tool_name tool_input tool_response tool_use_id",
    "PostToolUseFailure": "tool_name tool_input tool_use_id error is_interrupt",
    "Notification": "message title notification_type",
    "UserPromptSubmit": "prompt",
    "SessionStart": "source agent_type model",
    "SessionEnd": "reason",
    "Stop": "stop_hook_active",
    "SubagentStart": "agent_id agent_type",
    "SubagentStop": "stop_hook_active agent_id agent_transcript_path agent_type",
    "PreCompact": "trigger custom_instructions",
    "PermissionRequest": "tool_name tool_input",
    "Setup": "trigger",
    "TeammateIdle": "teammate_name team_name",
    "TaskCompleted": "task_id task_subject task_description teammate_name team_name",
}


def test_every_event_has_the_fields_of_the_seed() -> None:
    """All fifteen, each with the base's fields."""
    for name, fields in FIELDS.items():
        wanted = {"session_id", "transcript_path", "cwd", "permission_mode", *fields.split()}
        assert wanted <= set(CATALOG[name].cls.__struct_fields__), name
        assert HookEvent(name).value == name


def test_hooks_of_a_matcher_run_in_the_order_of_the_list() -> None:
    """And each matcher's limit is for all hooks in it."""
    seen: list[str] = []

    def first(input_data: Any, tool_use_id: Any, ctx: Any) -> dict[str, Any]:
        seen.append("first")
        return {}

    def second(input_data: Any, tool_use_id: Any, ctx: Any) -> dict[str, Any]:
        seen.append("second")
        return {"decision": "block", "reason": "no"}

    hooks = Hooks()
    made = hooks.add({"PreToolUse": [{"matcher": "Bash", "hooks": [first, second], "timeout": 5}]})

    assert hooks.fire_sync(bash("ls")).reason == "no"
    assert hooks.fire_sync(tool("Read")).decision is Decision.PASS
    assert (seen, [hook.timeout for hook in made]) == (["first", "second"], [5, 5])


def test_continue_false_ends_the_round() -> None:
    """Hooks after the one that says so are not asked, as with a deny."""
    hooks, asked = Hooks(), list[str]()

    @hooks.on(PreToolUse)
    async def enough(event: PreToolUse) -> dict[str, Any]:
        return {"continue": False, "stopReason": "enough"}

    @hooks.on(PreToolUse)
    async def never(event: PreToolUse) -> None:
        asked.append("never")

    verdict = hooks.fire_sync(bash("ls"))
    assert (verdict.stop, verdict.stop_reason, asked) == (True, "enough", [])


def test_pre_tool_use_results_become_one_decision() -> None:
    """`processPreToolUseResults`: deny, allow, block, else nobody has decided."""
    rows: list[tuple[Any, Decision]] = [
        (deny("no"), Decision.DENY),
        (allow(), Decision.ALLOW),
        ({"decision": "block"}, Decision.DENY),
        (None, Decision.PASS),
    ]
    for answer, decision in rows:
        assert fire_sync(lambda event, answer=answer: answer, bash("ls")).decision is decision, answer


def test_stop_results_keep_the_agent_going() -> None:
    """`processStopResults`: in this dialect `continue: true` does, in Claude Code's own a block does."""
    assert DIALECTS["spec"].decode_reply({"continue": True}, "Stop") == keep_going()
    assert fire_sync(lambda event: {"decision": "block", "reason": "tests fail"}, Stop()).keep_going


def test_an_async_output_is_waited_for_elsewhere() -> None:
    """`{"async": true, "asyncTimeout": 5}`."""
    assert DIALECTS["spec"].decode_reply({"async": True, "asyncTimeout": 5}, "PostToolUse") == background(timeout=5)


async def test_context_and_system_messages_reach_the_next_request(tmp_path: Path) -> None:
    """`collectAdditionalContext`: both, of a hook in the seed's dialect."""
    specific = '{"hookEventName": "SessionStart", "additionalContext": "MORE"}'
    answer = f'{{"systemMessage": "SYSTEM", "hookSpecificOutput": {specific}}}'
    hooks = Hooks()
    hooks.add("SessionStart", Command(command=f"printf '%s' '{answer}'", dialect="spec"), name="start")
    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        await agent.run("go")
        told = "\n".join(reminders(requests_of(agent)[0]))

    assert [word in told for word in ("SYSTEM", "MORE")] == [True, True]


async def test_a_limit_cancels_and_errors_do_not_crash_the_loop(tmp_path: Path) -> None:
    """Timeout enforcement and error isolation, on an event that cannot block."""
    hooks = Hooks()

    async def slow(event: Stop) -> None:
        await asyncio.Event().wait()

    def broken(event: Stop) -> None:
        raise ValueError("oops")

    hooks.add(Stop, slow, timeout=0.01)
    hooks.add(broken)
    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        result = await agent.run("go")

    assert (result.text, context("x").context) == ("done", ("x",))
