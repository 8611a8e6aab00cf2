"""seeds/004 in our words: hooks with matchers given to a session, the message protocol, and the switch.

Its four user stories are played in `test_us1_…` to `test_us4_…`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, Verdict
from hookline.core.wire.dialects import DIALECTS
from hookline.events import PostToolUse, PreToolUse
from hookline.hosts.answer import LineCodec, answer
from hookline.testing import assert_denied, bash, succeeded, tool

EVENT = {
    "type": "hook_event", "hook_event_name": "PreToolUse", "session_id": "session-123",
    "transcript_path": "/tmp/transcript.json", "cwd": "/home/user/project", "tool_name": "Write",
    "tool_input": {"file_path": "/home/user/project/main.go", "content": "package main\n"},
    "tool_use_id": "tool-use-abc123",
}  # fmt: skip
RESPONSE = {
    "type": "hook_response", "tool_use_id": "tool-use-abc123", "continue": True, "suppress_output": False,
    "decision": "approve", "system_message": "", "reason": "",
}  # fmt: skip


def validate(event: PreToolUse) -> dict[str, Any]:
    """The seed's first sample; a real one is `guards.paths.stay_inside()`, which knows `..` and links."""
    if not (event.file_path or "").startswith(event.cwd):
        return {"decision": "block", "stopReason": "Cannot write outside project directory"}
    return {"continue": True}


def with_hooks() -> Hooks:
    """`WithHooks`: a map of events to matchers with a handler."""
    executed: list[str] = []

    def log(event: PostToolUse) -> dict[str, Any]:
        executed.append(event.tool_name)
        return {"continue": True}

    hooks = Hooks()
    hooks.add({
        "PreToolUse": [{"matcher": "Write|Edit|MultiEdit", "hooks": [validate]}],
        "PostToolUse": [{"matcher": ".*", "hooks": [log]}],
    })  # fmt: skip
    hooks.executed = executed  # type: ignore[attr-defined]
    return hooks


def test_a_write_outside_is_blocked_with_its_reason() -> None:
    """The headline sample: `stopReason` is the reason of a block that has no other."""
    hooks = with_hooks()
    outside = PreToolUse(tool_name="Write", tool_input={"file_path": "/etc/passwd"}, cwd="/home/user/project")
    inside = PreToolUse(
        tool_name="Write", tool_input={"file_path": "/home/user/project/a.go"}, cwd="/home/user/project"
    )

    assert_denied(hooks.fire_sync(outside), reason="Cannot write outside project directory")
    assert not hooks.fire_sync(inside).blocked
    assert not hooks.fire_sync(bash("ls")).blocked


def test_every_tool_is_logged() -> None:
    """`.*` is all tools."""
    hooks = with_hooks()
    for event in (bash("ls"), tool("Read")):
        hooks.fire_sync(succeeded(event))

    assert hooks.executed == ["Bash", "Read"]  # type: ignore[attr-defined]


async def test_the_message_protocol() -> None:
    """An event line in, a response line out, with every field of the sample."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: {"decision": "approve"}, name="approve")
    said = json.loads(await answer(hooks, json.dumps(EVENT).encode(), LineCodec("message")))

    assert {key: said[key] for key in RESPONSE} == RESPONSE
    assert DIALECTS["message"].decode_event(EVENT).tool_use_id == "tool-use-abc123"


@pytest.mark.parametrize(
    "matcher, name, matches",
    [
        ("Write|Edit", "Write", True),
        ("Write|Edit", "Read", False),
        ("", "Bash", True),
        ("Write|Edit", "MultiEdit", False),
    ],
)
def test_matches_tool_name(matcher: str, name: str, matches: bool) -> None:
    """The table of the test plan; its last row differs: names joined by `|` are exact here, not a search."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: {"decision": "block"}, match=matcher, name="gate")

    assert hooks.fire_sync(tool(name)).blocked is matches


def test_a_chain_stops_at_the_first_block() -> None:
    """All matching hooks run in order, until one blocks."""
    hooks, asked = Hooks(), list[str]()
    for name, blocks in (("first", False), ("second", True), ("third", True)):

        def judge(event: PreToolUse, name: str = name, blocks: bool = blocks) -> dict[str, Any]:
            asked.append(name)
            return {"decision": "block", "reason": name} if blocks else {"continue": True}

        hooks.add(PreToolUse, judge, name=name)

    verdict: Verdict = hooks.fire_sync(bash("ls"))
    assert (verdict.reason, asked) == ("second", ["first", "second"])


def test_hooks_can_be_switched_off() -> None:
    """`AGENT_SDK_HOOKS_ENABLED=false` is `hooks.engine.enabled = False`: a program's own decision."""
    hooks = with_hooks()
    hooks.engine.enabled = False
    outside = PreToolUse(tool_name="Write", tool_input={"file_path": "/etc/passwd"}, cwd=str(Path("/p")))

    assert not hooks.fire_sync(outside).blocked
