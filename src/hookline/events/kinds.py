"""The events: a tool call and the permission to make it, a session, its prompts, its memory and its model."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import field

from hookline.errors import EventError
from hookline.events.base import Event, thaw

__all__ = [
    "ConfigChange", "CwdChanged", "DirectoryAdded", "Elicitation", "ElicitationResult", "FileChanged",
    "InstructionsLoaded", "MessageDisplay", "Notification", "PermissionDenied", "PermissionRequest", "PostCompact",
    "PostModelCall", "PostModelSwitch", "PostToolBatch", "PostToolUse", "PostToolUseFailure", "PreCompact",
    "PreModelCall", "PreModelSwitch", "PreOutput", "PreToolUse", "SessionEnd", "SessionStart", "Setup", "Stop",
    "StopFailure", "SubagentStart", "SubagentStop", "TaskCompleted", "TaskCreated", "TeammateIdle",
    "UserPromptExpansion", "UserPromptSubmit", "WorktreeCreate", "WorktreeRemove",
]  # fmt: skip
T = TypeVar("T")


class ToolEvent(Event, frozen=True, kw_only=True, eq=False):
    """An event about one tool call; a matcher looks at the tool's name."""

    event_name = ""  # each of them has its own
    subject_field: ClassVar[str | None] = "tool_name"
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


class Setup(Event, frozen=True, kw_only=True, eq=False):
    """A project is being set up or maintained, before any session starts."""

    subject_field: ClassVar[str | None] = "trigger"
    trigger: str = "init"


class SessionStart(Event, frozen=True, kw_only=True, eq=False):
    """A session begins, or begins again after a resume, a clear or a compaction."""

    subject_field: ClassVar[str | None] = "source"
    source: str = "startup"
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: float | None = None
    context_tokens: float | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: float | None = None


class SessionEnd(Event, frozen=True, kw_only=True, eq=False):
    """A session is over; nothing can be changed any more."""

    subject_field: ClassVar[str | None] = "reason"
    reason: str = "other"


class UserPromptSubmit(Event, frozen=True, kw_only=True, eq=False):
    """A prompt was given; the model has not seen it yet."""

    prompt: str = ""
    source: str | None = None
    session_title: str | None = None


class UserPromptExpansion(Event, frozen=True, kw_only=True, eq=False):
    """A slash command or an MCP prompt is about to be expanded into the prompt it stands for."""

    subject_field: ClassVar[str | None] = "command_name"
    expansion_type: str = "slash_command"
    command_name: str = ""
    command_args: str = ""
    command_source: str | None = None
    prompt: str = ""


class Stop(Event, frozen=True, kw_only=True, eq=False):
    """The agent thinks it is done; a hook may send it back to work."""

    stop_hook_active: bool = False
    last_assistant_message: str | None = None
    background_tasks: list[dict[str, Any]] | None = None
    session_crons: list[dict[str, Any]] | None = None


class StopFailure(Event, frozen=True, kw_only=True, eq=False):
    """The turn ended because the model could not answer."""

    subject_field: ClassVar[str | None] = "error"
    error: str = "unknown"
    error_details: str | None = None
    last_assistant_message: str | None = None


class Notification(Event, frozen=True, kw_only=True, eq=False):
    """The user is being told something."""

    subject_field: ClassVar[str | None] = "notification_type"
    message: str = ""
    title: str | None = None
    notification_type: str = ""


class MessageDisplay(Event, frozen=True, kw_only=True, eq=False):
    """A piece of the assistant's text is about to be shown."""

    turn_id: str = ""
    message_id: str = ""
    index: float = 0
    final: bool = False
    delta: str = ""


class PreCompact(Event, frozen=True, kw_only=True, eq=False):
    """The conversation is about to be summarised to make room."""

    subject_field: ClassVar[str | None] = "trigger"
    trigger: str = "manual"
    custom_instructions: str | None = field(default=None)


class PostCompact(Event, frozen=True, kw_only=True, eq=False):
    """The conversation was summarised."""

    subject_field: ClassVar[str | None] = "trigger"
    trigger: str = "manual"
    compact_summary: str = ""


class ModelSwitch(Event, frozen=True, kw_only=True, eq=False):
    """What both model-switch events carry; a matcher looks at the new model."""

    event_name = ""  # each of them has its own
    subject_field: ClassVar[str | None] = "to_model"
    from_model: str = ""
    to_model: str = ""
    requested_model: str | None = None
    source: str = "sdk"
    context_tokens: float = 0
    prompt_cache_warm: bool = False
    cache_ttl: str = "5m"
    estimated_cache_write_usd: float = 0
    pricing: str = "default"


class PreModelSwitch(ModelSwitch, frozen=True, kw_only=True, eq=False):
    """Another model was asked for; the old one is still in use."""


class PostModelSwitch(ModelSwitch, frozen=True, kw_only=True, eq=False):
    """Another model is in use from now on."""


class ElicitationEvent(Event, frozen=True, kw_only=True, eq=False):
    """What both elicitation events carry; a matcher looks at the MCP server's name."""

    event_name = ""  # each of them has its own
    subject_field: ClassVar[str | None] = "mcp_server_name"
    mcp_server_name: str = ""
    mode: str | None = None
    elicitation_id: str | None = None


class Elicitation(ElicitationEvent, frozen=True, kw_only=True, eq=False):
    """An MCP server asks the user for something."""

    message: str = ""
    url: str | None = None
    requested_schema: dict[str, Any] | None = None


class ElicitationResult(ElicitationEvent, frozen=True, kw_only=True, eq=False):
    """The user's answer is about to go back to the MCP server."""

    action: str = "cancel"
    content: dict[str, Any] | None = None


class PreModelCall(Event, frozen=True, kw_only=True, eq=False):
    """The model is about to be asked; a matcher looks at its name."""

    subject_field: ClassVar[str | None] = "model"
    model: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)


class PostModelCall(Event, frozen=True, kw_only=True, eq=False):
    """The model has answered; the agent has not acted on it yet."""

    subject_field: ClassVar[str | None] = "model"
    model: str = ""
    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    stop_reason: str | None = None


class PreOutput(Event, frozen=True, kw_only=True, eq=False):
    """The agent is done and its answer is about to be returned to the sender of the prompt."""

    text: str = ""


class SubagentStart(Event, frozen=True, kw_only=True, eq=False):
    """A subagent is about to start; `agent_id` and `agent_type` say which."""

    subject_field: ClassVar[str | None] = "agent_type"
    agent_id: str = ""
    agent_type: str = ""
    description: str | None = None


class SubagentStop(Event, frozen=True, kw_only=True, eq=False):
    """A subagent thinks it is done, or failed (`success`, `error`); a hook may send one that is done back to work."""

    subject_field: ClassVar[str | None] = "agent_type"
    agent_id: str = ""
    agent_type: str = ""
    stop_hook_active: bool = False
    agent_transcript_path: str = ""
    last_assistant_message: str | None = None
    background_tasks: list[dict[str, Any]] | None = None
    session_crons: list[dict[str, Any]] | None = None
    description: str | None = None
    success: bool | None = None
    error: str | None = None


class TeammateIdle(Event, frozen=True, kw_only=True, eq=False):
    """A teammate has nothing left to do; a hook may send it back to work."""

    teammate_name: str = ""
    team_name: str = ""


class TaskEvent(Event, frozen=True, kw_only=True, eq=False):
    """What both task events carry."""

    event_name = ""  # each of them has its own

    task_id: str = ""
    task_subject: str = ""
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreated(TaskEvent, frozen=True, kw_only=True, eq=False):
    """A task is about to be added to the list."""


class TaskCompleted(TaskEvent, frozen=True, kw_only=True, eq=False):
    """A task is about to be marked as done."""


class ConfigChange(Event, frozen=True, kw_only=True, eq=False):
    """A settings file changed and is about to take effect."""

    subject_field: ClassVar[str | None] = "source"
    source: str = "project_settings"
    file_path: str | None = None


class InstructionsLoaded(Event, frozen=True, kw_only=True, eq=False):
    """A file of instructions was read into the conversation."""

    subject_field: ClassVar[str | None] = "load_reason"
    file_path: str = ""
    memory_type: str = "Project"
    load_reason: str = "session_start"
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class CwdChanged(Event, frozen=True, kw_only=True, eq=False):
    """The agent works in another folder from now on."""

    old_cwd: str = ""
    new_cwd: str = ""


class FileChanged(Event, frozen=True, kw_only=True, eq=False):
    """A watched file was changed, added or removed; a matcher looks at its base name."""

    subject_field: ClassVar[str | None] = "file_name"
    file_path: str = ""
    event: str = "change"

    @property
    def file_name(self) -> str:
        """The last part of `file_path`."""
        return self.file_path.replace("\\", "/").rpartition("/")[2]


class DirectoryAdded(Event, frozen=True, kw_only=True, eq=False):
    """The agent may work in one more folder."""

    directory: str = ""
    source: str = "slash_command"


class WorktreeCreate(Event, frozen=True, kw_only=True, eq=False):
    """A git worktree is wanted; a hook may make it and answer with its path."""

    name: str = ""


class WorktreeRemove(Event, frozen=True, kw_only=True, eq=False):
    """A git worktree is about to be removed."""

    worktree_path: str = ""
