"""seeds/001 in our words: a runner with matchers, async hooks, shell commands, and what the loop makes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hookline import (
    Command,
    Context,
    Decision,
    Hooks,
    allow,
    background,
    context,
    deny,
    keep_going,
    message,
    rewrite,
    stop,
)
from hookline.core.engine.observers import HookProgress, HookResponse, HookStarted
from hookline.events import PostToolUse, PreToolUse, SessionStart, Stop
from hookline.testing import assert_denied, bash, fire_sync, tool
from tests.agent.driving import agent_on, reminders, requests_of, results
from tests.agent.driving import bash as bash_turn


def test_every_field_of_a_hook_result_has_its_place() -> None:
    """Decision, Message, Continue, SystemMessage, SuppressOutput, StopReason, Reason, HookSpecificOutput."""
    specific = {"hookEventName": "PreToolUse", "additionalContext": "C"}
    answer = {"decision": "block", "reason": "R", "systemMessage": "M", "suppressOutput": True, "continue": False,
              "stopReason": "S", "hookSpecificOutput": specific}  # fmt: skip
    reply = fire_sync(lambda event: answer, bash("ls")).reply

    assert (reply.decision, reply.reason, reply.messages, reply.context) == (Decision.DENY, "R", ("M",), ("C",))
    assert (reply.suppress_output, reply.stop, reply.stop_reason) == (True, True, "S")


def test_matchers_are_exact_glob_or_empty() -> None:
    """`Bash`, `mcp__*`, and nothing, which is everything."""
    for matcher, meant in (("Bash", ["Bash"]), ("mcp__*", ["mcp__files__read"]), ("", ["Bash", "mcp__files__read"])):
        hooks = Hooks()
        hooks.add(PreToolUse, lambda event: deny("no"), match=matcher, name="gate")
        denied = [name for name in ("Bash", "mcp__files__read") if hooks.fire_sync(tool(name)).blocked]
        assert denied == meant, matcher


async def test_a_hook_may_answer_later() -> None:
    """`AsyncHookJSONOutput`: nothing is held up, and the outcome is collected."""
    hooks, ready = Hooks(), asyncio.Event()

    async def work() -> Any:
        await ready.wait()
        return context("LATE")

    hooks.add(PostToolUse, lambda event: background(work(), timeout=5), name="late")
    verdict = await hooks.fire(PostToolUse(tool_name="Bash"))
    ready.set()
    (late,) = await hooks.drain()

    assert verdict.decision is Decision.PASS
    assert late.reply.context == ("LATE",)


def test_a_shell_command_reads_json_and_answers_json() -> None:
    """`ShellHookCallback`: the event on stdin, the answer on stdout."""
    deny_rm = 'grep -q "rm -rf" && printf \'{"decision": "block", "reason": "no rm"}\' || true'
    hooks = Hooks()
    hooks.add(PreToolUse, Command(command=deny_rm), name="shell")

    assert_denied(hooks.fire_sync(PreToolUse(tool_name="Bash", tool_input={"command": "rm -rf /"})), reason="no rm")
    assert not hooks.fire_sync(PreToolUse(tool_name="Bash", tool_input={"command": "ls"})).blocked


def test_first_deny_then_allow_then_ask() -> None:
    """One hook's deny wins, whatever the order; `continue: false` stops the agent as well."""
    for replies, decision in (
        ([allow(), deny("no")], Decision.DENY),
        ([deny("no"), allow()], Decision.DENY),
        ([None, allow()], Decision.ALLOW),
        ([None, None], Decision.PASS),
    ):
        hooks = Hooks()
        for number, reply in enumerate(replies):
            hooks.add(PreToolUse, lambda event, reply=reply: reply, name=f"hook {number}")
        assert hooks.fire_sync(bash("ls")).decision is decision, replies
    assert fire_sync(lambda event: stop("enough"), bash("ls")).stop


async def test_the_loop_acts_on_what_hooks_say(tmp_path: Path) -> None:
    """A deny skips the tool, a rewrite changes its input, context and SessionStart's reach the model, Stop goes on."""
    hooks = Hooks()
    hooks.add(SessionStart, lambda event: context("START"), name="start")
    hooks.add(PreToolUse, lambda event: deny("NO") if "secret" in event.command else None, name="gate")
    hooks.add(PreToolUse, lambda event: rewrite({"command": "echo changed > out.txt"}) if "out" in event.command
              else None, name="rewrite")  # fmt: skip
    hooks.add(PostToolUse, lambda event: context("AFTER"), name="after")
    hooks.add(Stop, lambda event: None if event.stop_hook_active else keep_going("MORE"), name="stop")
    async with agent_on(
        tmp_path, bash_turn("cat secret"), bash_turn("echo x > out.txt"), "done", "really", hooks=hooks
    ) as agent:
        result = await agent.run("go")
        requests = requests_of(agent)

    assert (tmp_path / "out.txt").read_text() == "changed\n"
    assert "NO" in str(results(requests[1])[0].content)
    told = "\n".join(reminders(requests[-1]))
    assert ("START" in told, "AFTER" in told) == (True, True)
    assert ("MORE" in str(requests[-1].messages), result.text) == (True, "really")


async def test_hooks_are_told_of_while_they_run() -> None:
    """`EmitChannel`: HookStarted, HookProgress and HookResponse."""
    hooks, seen = Hooks(), list[type]()
    hooks.observe(lambda notice: seen.append(type(notice)), inline=True)

    @hooks.on(PreToolUse)
    async def works(event: PreToolUse, ctx: Context) -> None:
        ctx.progress("stdout", "working")

    await hooks.fire(bash("ls"))

    assert {HookStarted, HookProgress, HookResponse} <= set(seen)


def test_one_broken_hook_does_not_take_the_others_with_it() -> None:
    """Error isolation, and a message for the user from the one that works."""

    def broken(event: PostToolUse) -> None:
        raise ValueError("oops")

    hooks = Hooks()
    hooks.add(broken)
    hooks.add(PostToolUse, lambda event: message("fine"), name="fine")
    verdict = hooks.fire_sync(PostToolUse(tool_name="Bash"))

    assert (verdict.messages, len(verdict.failures)) == (("fine",), 1)
