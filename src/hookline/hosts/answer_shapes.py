"""Answers that several hosts word alike, after Claude Code's example. Pure data."""

from __future__ import annotations

from typing import Any

from hookline.hosts.host import TEXT, VALUE, Tool

Body = dict[str, Any]

BLOCK: Body = {"decision": "block", "reason": TEXT}
DENY: Body = {"decision": "deny", "reason": TEXT}
END_TURN: Body = {"continue": False, "stopReason": TEXT}
SYSTEM_MESSAGE: Body = {"systemMessage": TEXT}


def specific(event: str, **fields: Any) -> Body:
    """`hookSpecificOutput` of an event."""
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def permission(event: str, word: str) -> Body:
    """A permission decision with its reason."""
    return specific(event, permissionDecision=word, permissionDecisionReason=TEXT)


def rewritten(event: str, **more: Any) -> Body:
    """A new input for the tool."""
    return specific(event, updatedInput=VALUE, **more)


def context(event: str) -> Body:
    """Something for the model to read."""
    return specific(event, additionalContext=TEXT)


REQUEST_DENIED: Body = specific("PermissionRequest", decision={"behavior": "deny", "message": TEXT})
REQUEST_ALLOWED: Body = specific("PermissionRequest", decision={"behavior": "allow"})

CLAUDE_EVENTS = (
    "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart",
    "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "Notification",
)  # fmt: skip


def same(*names: str) -> dict[str, str]:
    """Events that go by the same name here and there."""
    return {name: name for name in names}


BASH = Tool("Bash")
WRITE, EDIT, READ = Tool("Write"), Tool("Edit"), Tool("Read")
GREP, GLOB = Tool("Grep"), Tool("Glob")
