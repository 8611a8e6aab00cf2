"""Events around a tool call and the permission to make it."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import field

from hookline.errors import EventError
from hookline.events.base import Event
from hookline.events.frozen import thaw

T = TypeVar("T")


class ToolEvent(Event, frozen=True, kw_only=True, eq=False):
    """An event about one tool call; a matcher looks at the tool's name."""

    event_name = ""  # each of them has its own
    subject_field = "tool_name"
    tool_name: str = ""
    tool_input: dict[str, Any] = field(default_factory=dict)
    mcp_server: dict[str, Any] | None = None

    @property
    def command(self) -> str:
        """The command line that the call would run, or the empty string."""
        return self._text("command")

    @property
    def file_path(self) -> str:
        """The file that the call is about, or the empty string."""
        return self._text("file_path") or self._text("notebook_path")

    @property
    def url(self) -> str:
        """The address that the call would fetch, or the empty string."""
        return self._text("url")

    def _text(self, name: str) -> str:
        value = self.tool_input.get(name)
        return value if isinstance(value, str) else ""

    def input_as(self, shape: type[T]) -> T:
        """The input as one of `hookline.events.tool_inputs`; one that does not have the shape is an `EventError`."""
        try:
            return msgspec.convert(thaw(self.tool_input), shape)
        except msgspec.ValidationError as problem:
            name = getattr(shape, "__name__", str(shape))
            raise EventError(f"input of `{self.tool_name}` is not a {name}: {problem}") from None


class PreToolUse(ToolEvent, frozen=True, kw_only=True, eq=False):
    """The agent is about to call a tool; nothing has run yet."""

    tool_use_id: str = ""


class PostToolUse(ToolEvent, frozen=True, kw_only=True, eq=False):
    """A tool call succeeded; its output has not reached the model yet."""

    tool_response: Any = None
    tool_use_id: str = ""
    duration_ms: float | None = None


class PostToolUseFailure(ToolEvent, frozen=True, kw_only=True, eq=False):
    """A tool call failed; `error` is what the model will read."""

    tool_use_id: str = ""
    error: str = ""
    is_interrupt: bool | None = None
    duration_ms: float | None = None


class PostToolBatch(Event, frozen=True, kw_only=True, eq=False):
    """All tool calls of one model turn are done, denied and invalid ones included."""

    tool_calls: list[dict[str, Any]] = field(default_factory=list)


class PermissionRequest(ToolEvent, frozen=True, kw_only=True, eq=False):
    """Nothing has allowed a tool call yet and someone would have to be asked."""

    permission_suggestions: list[dict[str, Any]] | None = None
    tool_use_id: str | None = None  # Claude Code names the call beside the event, not in it


class PermissionDenied(ToolEvent, frozen=True, kw_only=True, eq=False):
    """A tool call was refused."""

    tool_use_id: str = ""
    reason: str = ""
