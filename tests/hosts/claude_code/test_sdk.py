"""Our engine in the official SDK's place for hooks."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from hookline.api import Hooks
from hookline.errors import HooksIgnored
from hookline.events import PostToolUse, PreToolUse, SessionStart
from hookline.hosts.claude_code import for_sdk
from hookline.replies import Reply, deny, stop

pytestmark = pytest.mark.skipif(find_spec("claude_agent_sdk") is None, reason="needs claude-agent-sdk")
BASH = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}


def hooks_that(answer: Reply | None) -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse, match="Bash", timeout=2)
    async def gate(event: PreToolUse) -> Reply | None:
        return answer

    @hooks.on(PostToolUse)
    async def watch(event: PostToolUse) -> None:
        return None

    return hooks


def test_the_options_take_it() -> None:
    """One matcher an event, with the union of the matchers, a timeout beyond ours and the failure policy."""
    sdk: Any = import_module("claude_agent_sdk")  # here, since reading it takes two seconds
    options = sdk.ClaudeAgentOptions(hooks=for_sdk(hooks_that(None)))

    [gate], [watch] = options.hooks["PreToolUse"], options.hooks["PostToolUse"]
    assert (gate.matcher, gate.timeout, gate.on_failure) == ("Bash", 2 * 3 + 5, "block")
    assert (watch.matcher, watch.on_failure, len(watch.hooks)) == (None, None, 1)


@pytest.mark.parametrize(
    "answer, decision", [(None, None), (deny("no"), "deny"), (stop("enough"), "deny")], ids=["none", "deny", "stop"]
)
async def test_the_callback_asks_the_engine(answer: Reply | None, decision: str | None) -> None:
    """What the engine decides is what the SDK sends."""
    [gate] = for_sdk(hooks_that(answer))["PreToolUse"]

    said = await gate.hooks[0](BASH, "t", {"signal": None})

    assert said.get("hookSpecificOutput", {}).get("permissionDecision") == decision


async def test_a_gate_that_cannot_be_asked_denies() -> None:
    """Elsewhere the SDK gets the exception."""
    hooks = hooks_that(None)
    matchers: Any = for_sdk(hooks)
    await hooks.aclose()

    said = await matchers["PreToolUse"][0].hooks[0](BASH, "t", {})

    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    with pytest.raises(Exception, match="closed"):
        await matchers["PostToolUse"][0].hooks[0]({**BASH, "hook_event_name": "PostToolUse"}, "t", {})


def test_events_that_the_cli_never_sends_are_warned_about() -> None:
    """The SDK would register such a hook, and it would never run."""
    hooks = Hooks()

    @hooks.on(SessionStart)
    async def begin(event: SessionStart) -> None:
        return None

    with pytest.warns(HooksIgnored, match="never calls the SDK's hooks on SessionStart"):
        for_sdk(hooks)
