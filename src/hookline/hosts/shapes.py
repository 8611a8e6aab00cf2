"""What several hosts have in common: answers after Claude Code's example, tools, names, the calls of a proof. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from hookline.hosts.host import FileEdit, HookEntry, McpReader, Tool, ToolCall, hook, mcp_name

Body = dict[str, Any]

TEXT = "{text}"
"""Stands in a template for the reason, the context or the message."""

VALUE = "{value}"
"""Stands in a template for the tool's new input or output, as the host itself would write it."""

BLOCK: Body = {"decision": "block", "reason": TEXT}
DENY: Body = {"decision": "deny", "reason": TEXT}
END_TURN: Body = {"continue": False, "stopReason": TEXT}
SYSTEM_MESSAGE: Body = {"systemMessage": TEXT}


def specific(event: str, **fields: Any) -> Body:
    """`hookSpecificOutput` of an event."""
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def permissions(event: str, *words: str) -> dict[str, Body]:
    """Permission decisions with their reason: of `deny`, `ask`, `allow` and `defer`, those that the host knows."""
    return {word: specific(event, permissionDecision=word, permissionDecisionReason=TEXT) for word in words}


def rewritten(event: str, **more: Any) -> Body:
    """A new input for the tool."""
    return specific(event, updatedInput=VALUE, **more)


def context(event: str) -> Body:
    """Something for the model to read."""
    return specific(event, additionalContext=TEXT)


REQUEST: dict[str, Body] = {
    "deny": specific("PermissionRequest", decision={"behavior": "deny", "message": TEXT}),
    "allow": specific("PermissionRequest", decision={"behavior": "allow"}),
}

COMMON_EVENTS = (
    "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart",
    "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "Notification",
)  # fmt: skip


def same(*names: str) -> dict[str, str]:
    """Events that go by the same name here and there."""
    return {name: name for name in names}


BASH, WRITE, EDIT, READ = Tool("Bash"), Tool("Write"), Tool("Edit"), Tool("Read")
READ_PATH = Tool("Read", {"path": "file_path"})
GREP, GLOB, LIST, AGENT = Tool("Grep"), Tool("Glob"), Tool("LS"), Tool("Agent")
FETCH, SEARCH = Tool("WebFetch"), Tool("WebSearch")


def joined_by(separator: str) -> McpReader:
    """Names of the form server, separator, tool; one that can be cut in several places is read in every way."""

    def read(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
        parts = name.split(separator)
        cuts = range(1, len(parts))
        return tuple(mcp_name(separator.join(parts[:cut]), separator.join(parts[cut:])) for cut in cuts)

    return read


def named(entry: HookEntry) -> Body:
    """An entry as Claude Code's, with a name for the hook."""
    return {"hooks": [{"name": "hookline", **hook(entry)}]}


def flat(entry: HookEntry) -> Body:
    """An entry that is a command and a timeout."""
    return {"command": entry.command, "timeout": entry.timeout}


# -- proofs -----------------------------------------------------------------------------------------------------------

NAME = "hookline-proof"
"""What the scripted model and its provider are called; a user's own may have any other name."""

GENERAL = MappingProxyType({"description": "x", "subagent_type": "general-purpose"})
"""What several agents want to know of an agent to start."""


def command_call(name: str, **more: Any) -> Callable[[str], ToolCall]:
    """A shell tool that takes a `command`."""
    return lambda command: (name, {"command": command, **more})


def file_call(name: str, path: str = "file_path", text: str = "content", **more: Any) -> Callable[[str], ToolCall]:
    """A tool that writes a file."""
    return lambda file: (name, {path: file, text: "x\n", **more})


def prompt_call(tool: str, field: str = "prompt", /, **more: Any) -> Callable[[str], ToolCall]:
    """A tool that starts another agent."""
    return lambda prompt: (tool, {field: prompt, **more})


def quiet_settings(folder: str, auth: str) -> list[FileEdit]:
    """The settings that Gemini CLI and its descendants have in common."""
    values = {("security", "auth", "selectedType"): auth, ("telemetry", "enabled"): False,
              ("privacy", "usageStatisticsEnabled"): False, ("general", "disableAutoUpdate"): True}  # fmt: skip
    return [FileEdit(f"{folder}/settings.json", values)]
