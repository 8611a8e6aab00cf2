"""Events around a tool call and the permission to make it."""

from __future__ import annotations

from typing import Any

from msgspec import field

from hookline.events.base import Event


class ToolEvent(Event, frozen=True, kw_only=True, eq=False):
    """An event about one tool call; a matcher looks at the tool's name."""

    subject_field = "tool_name"

    tool_name: str = ""
    tool_input: dict[str, Any] = field(default_factory=dict)
    mcp_server: dict[str, Any] | None = None


class PreToolUse(ToolEvent, frozen=True, kw_only=True, eq=False):
    """The agent is about to call a tool; nothing has run yet."""

    event_name = "PreToolUse"

    tool_use_id: str = ""


class PostToolUse(ToolEvent, frozen=True, kw_only=True, eq=False):
    """A tool call succeeded; its output has not reached the model yet."""

    event_name = "PostToolUse"

    tool_response: Any = None
    tool_use_id: str = ""
    duration_ms: float | None = None


class PostToolUseFailure(ToolEvent, frozen=True, kw_only=True, eq=False):
    """A tool call failed; `error` is what the model will read."""

    event_name = "PostToolUseFailure"

    tool_use_id: str = ""
    error: str = ""
    is_interrupt: bool | None = None
    duration_ms: float | None = None


class PostToolBatch(Event, frozen=True, kw_only=True, eq=False):
    """All tool calls of one model turn are done, denied and invalid ones included."""

    event_name = "PostToolBatch"

    tool_calls: list[dict[str, Any]] = field(default_factory=list)


class PermissionRequest(ToolEvent, frozen=True, kw_only=True, eq=False):
    """Nothing has allowed a tool call yet and somebody would have to be asked."""

    event_name = "PermissionRequest"

    permission_suggestions: list[dict[str, Any]] | None = None


class PermissionDenied(ToolEvent, frozen=True, kw_only=True, eq=False):
    """A tool call was refused."""

    event_name = "PermissionDenied"

    tool_use_id: str = ""
    reason: str = ""
