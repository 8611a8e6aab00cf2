"""What happened: one frozen class per event, and the catalogue that lists them."""

from hookline.events.base import Event
from hookline.events.catalog import CATALOG, OWN_EVENTS, EventSpec, HookEvent, spec_of
from hookline.events.session import (
    ConfigChange,
    CwdChanged,
    DirectoryAdded,
    Elicitation,
    ElicitationResult,
    FileChanged,
    InstructionsLoaded,
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
    SubagentStart,
    SubagentStop,
    TaskCompleted,
    TaskCreated,
    TeammateIdle,
    UserPromptExpansion,
    UserPromptSubmit,
    WorktreeCreate,
    WorktreeRemove,
)
from hookline.events.tools import (
    PermissionDenied,
    PermissionRequest,
    PostToolBatch,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
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
