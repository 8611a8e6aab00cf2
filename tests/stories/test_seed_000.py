"""seeds/000 in our words: callbacks with three parameters, their registration, limits and answers."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from hookline import Context, Decision, Hooks, Reply, context, deny
from hookline.core.wire import claude
from hookline.events import CATALOG, PreToolUse
from hookline.hosts.claude_code import ClaudeClient
from hookline.hosts.claude_code.messages import Failure, HookCallback, Success
from hookline.testing import assert_denied, assert_passed, bash, fire_sync
from tests.hosts.claude_code.fakes import FakeCli


def block_bash_patterns(patterns: list[str]) -> Any:
    """`BlockBashPatternHook`, as the seed writes it: a mapping in, a mapping out."""

    async def callback(input_data: dict[str, Any], tool_use_id: str | None, ctx: Any) -> dict[str, Any]:
        if input_data["tool_name"] != "Bash":
            return {}
        found = next((pattern for pattern in patterns if pattern in input_data["tool_input"].get("command", "")), None)
        if found is None:
            return {}
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": f"Command contains forbidden pattern: {found}",
            }
        }

    return callback


def test_the_six_events_are_there() -> None:
    """`HookEventPreToolUse` and the others."""
    names = {"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact"}
    assert names <= set(CATALOG)


def test_block_bash_pattern_hook() -> None:
    """A forbidden pattern denies; another tool, another command passes."""
    hooks = Hooks()
    hooks.add(PreToolUse, block_bash_patterns(["rm -rf", "sudo"]), name="patterns")

    assert_denied(hooks.fire_sync(bash("sudo ls")), reason="forbidden pattern: sudo")
    assert_passed(hooks.fire_sync(bash("ls")))


def test_the_outputs_of_the_seed_mean_what_it_says() -> None:
    """Deny with a reason, context after a tool, context with a prompt, a message that the model does not see."""
    rows: list[tuple[str, dict[str, Any], Reply]] = [
        ("PreToolUse", {"permissionDecision": "deny", "permissionDecisionReason": "rm -rf"}, deny("rm -rf")),
        ("PostToolUse", {"additionalContext": "Tool execution completed"}, context("Tool execution completed")),
        ("UserPromptSubmit", {"additionalContext": "My favorite color is hot pink"},
         context("My favorite color is hot pink")),
    ]  # fmt: skip
    for event, specific, reply in rows:
        assert claude.decode_reply({"hookSpecificOutput": {"hookEventName": event, **specific}}, event) == reply, event
    said = claude.decode_reply({"decision": "block", "systemMessage": "kept in the transcript"}, "PreToolUse")
    assert (said.decision, said.messages, said.context) == (Decision.DENY, ("kept in the transcript",), ())


def test_hooks_may_be_registered_from_many_threads() -> None:
    """`RegisterHooks` under a mutex: none is lost, and each has a name of its own."""
    hooks = Hooks()

    async def check(event: PreToolUse) -> None:
        return None

    threads = [
        threading.Thread(target=hooks.add, args=(PreToolUse, check), kwargs={"name": f"hook_{n}"}) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({hook.name for hook in hooks.hooks}) == 20


async def test_the_client_registers_callback_ids_and_executes_them() -> None:
    """`hook_callback` requests find their function; an unknown id is a structured error, not a crash."""
    hooks = Hooks()
    hooks.add(PreToolUse, block_bash_patterns(["rm -rf"]), name="patterns")
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
        known = await cli.answer_to(cli.call("hook_0", **event))
        asked = cli.cli.ask(HookCallback(callback_id="hook_0", input=claude_raw(event)))
        line = cli.cli.send(asked).replace(b"hook_0", b"hook_9")
        cli.raw(line)
        unknown = await cli.answer_to(asked.request_id)

    assert isinstance(known, Success)
    assert known.data()["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert isinstance(unknown, Failure)
    assert unknown.error_code == "unknown_callback"


def claude_raw(event: dict[str, Any]) -> Any:
    import msgspec

    return msgspec.Raw(msgspec.json.encode(event))


def test_a_callback_that_takes_too_long_fails_closed_and_the_limit_can_be_changed() -> None:
    """30 s by default, a hook's own `timeout` else."""

    async def slow(event: PreToolUse) -> None:
        await asyncio.Event().wait()

    hooks = Hooks()
    (made,) = hooks.add(PreToolUse, slow, timeout=0.01)
    assert (made.limit(None), hooks.add(PreToolUse, slow, name="default")[0].limit(None)) == (0.01, 30)
    hooks.remove("default")

    verdict = hooks.fire_sync(bash("ls"))
    assert_denied(verdict, reason="gave no reply within 0.01 s")


def test_a_callback_that_panics_is_a_failure_and_the_others_run() -> None:
    """The gate stays closed; the traceback is in the log, the reason names the hook."""
    seen: list[str] = []

    def broken(event: PreToolUse) -> None:
        raise ZeroDivisionError("oops")

    def other(event: PreToolUse) -> None:
        seen.append(event.tool_name)

    hooks = Hooks(order="parallel")
    for hook in (broken, other):
        hooks.add(hook)
    verdict = hooks.fire_sync(bash("ls"))

    assert_denied(verdict, by="broken", reason="ZeroDivisionError: oops")
    assert seen == ["Bash"]


def test_an_output_that_makes_no_sense_is_refused() -> None:
    """`Hook Output Validation`: a key that there is not, a word that the event does not know."""
    for answer in ({"decison": "block"}, {"hookSpecificOutput": {"hookEventName": "Stop"}}, {"decision": "maybe"}):
        verdict = fire_sync(lambda event, answer=answer: answer, bash("ls"))
        assert verdict.blocked, answer


async def test_a_cancelled_stream_cancels_the_hook_at_once() -> None:
    """The hook's context says which of the two it was: `cancelled`, or `timeout`."""
    reasons: list[str | None] = []
    started = asyncio.Event()

    async def careful(event: PreToolUse, ctx: Context) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(ctx.cancelled.reason)

    hooks = Hooks()
    hooks.add(PreToolUse, careful, timeout=0.01)
    await hooks.fire(bash("ls"))
    hooks.remove("careful")
    started.clear()
    hooks.add(PreToolUse, careful)
    stream = asyncio.create_task(hooks.fire(bash("ls")))
    await started.wait()
    stream.cancel()
    await asyncio.wait([stream])

    assert reasons == ["timeout", "cancelled"]
    assert stream.cancelled()
