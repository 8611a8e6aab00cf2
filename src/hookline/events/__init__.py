"""What happened: one frozen class per event, and the catalogue that lists them."""

from hookline.events.agents import SubagentStart, SubagentStop, TaskCompleted, TaskCreated, TeammateIdle
from hookline.events.base import Event
from hookline.events.catalog import CATALOG, OWN_EVENTS, EventSpec, HookEvent, spec_of
from hookline.events.session import (
    Elicitation,
    ElicitationResult,
    MessageDisplay,
    Notification,
    PostCompact,
    PostModelCall,
    PostModelSwitch,
    PreCompact,
    PreModelCall,
    PreModelSwitch,
    PreOutput,
    SessionEnd,
    SessionStart,
    Setup,
    Stop,
    StopFailure,
    UserPromptExpansion,
    UserPromptSubmit,
)
from hookline.events.tools import (
    PermissionDenied,
    PermissionRequest,
    PostToolBatch,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
)
from hookline.events.workspace import (
    ConfigChange,
    CwdChanged,
    DirectoryAdded,
    FileChanged,
    InstructionsLoaded,
    WorktreeCreate,
    WorktreeRemove,
)

__all__ = [
    "CATALOG", "OWN_EVENTS", "ConfigChange", "CwdChanged", "DirectoryAdded", "Elicitation", "ElicitationResult",
    "Event", "EventSpec", "FileChanged", "HookEvent", "InstructionsLoaded", "MessageDisplay", "Notification",
    "PermissionDenied", "PermissionRequest", "PostCompact", "PostModelCall", "PostModelSwitch", "PostToolBatch",
    "PostToolUse", "PostToolUseFailure", "PreCompact", "PreModelCall", "PreModelSwitch", "PreOutput", "PreToolUse",
    "SessionEnd", "SessionStart", "Setup", "Stop", "StopFailure", "SubagentStart", "SubagentStop", "TaskCompleted",
    "TaskCreated", "TeammateIdle", "UserPromptExpansion", "UserPromptSubmit", "WorktreeCreate", "WorktreeRemove",
    "spec_of",
]  # fmt: skip
