"""One row per event: what it is, what a matcher looks at, what a hook may answer, how it goes over the wire.

A gate comes before something that can still be prevented: there a failing hook counts as a deny. Any hook may say
nothing, or allow, which is what happens anyway on events that ask no permission. A new event is one class and one row
here; no other module keeps a table of event names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from hookline.errors import UnknownEvent
from hookline.events import kinds
from hookline.events.base import Event


class EventSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the catalogue: everything that depends on which event it is."""

    cls: type[Event]
    gate: bool
    decisions: frozenset[str]  # the decisions a reply may carry
    fields: tuple[str, ...]  # the reply fields it understands, of those that not every event does
    unsaid: frozenset[str] = frozenset()  # those that its JSON has no word for: a command prints them as text
    required: frozenset[str] = frozenset()  # those of them that its own part of the JSON must have
    decides: Literal["block", "permission", "request"] = "block"
    """How a decision is written: at the top, as a `permissionDecision`, or as a `decision` object of its own."""
    stdout: str = ""  # the reply field that plain text on a command's stdout fills
    carries: frozenset[str] = frozenset()  # what an agent tells with it: `permission_mode`, `effort`
    nulls: tuple[str, ...] = ()  # fields that are written even when they are null
    snake: Mapping[str, str] = MappingProxyType({})
    """What the `snake` dialect calls its fields, where that differs: their name → ours."""
    subjects: tuple[str, ...] = ()  # all that a matcher can meet, where that is known
    timeout: float = math.inf  # most seconds that a settings entry gets that names none: less where people wait
    env_file: bool = False  # whether a hook may export variables for later commands
    reported: bool = True  # whether single hooks are announced to an agent's host while they run
    stops: bool = True  # whether a wish to stop the agent is heard; where not, a judge that says no blocks
    audited: bool = False  # whether it belongs in an audit log even if no hook asks for it

    @property
    def name(self) -> str:
        """The event's name on the wire."""
        return self.cls.event_name

    @property
    def subject(self) -> str | None:
        """The field a matcher looks at, if any."""
        return self.cls.subject_field

    @property
    def keeps_going(self) -> bool:
        """Whether a block sends the agent back to work."""
        return "keep_going" in self.fields

    @property
    def about(self) -> str:
        """One sentence on what happened."""
        return (self.cls.__doc__ or "").partition("\n")[0]


_BLOCKS = "pass allow deny"
_MODE = frozenset({"permission_mode"})
_MODE_AND_EFFORT = frozenset({"permission_mode", "effort"})


def _watch(
    cls: type[Event], fields: str = "", decisions: str = "pass allow", *, gate: bool = False, **more: Any
) -> EventSpec:
    """An event that tells of something."""
    own = (*fields.split(), "terminal_sequence")
    return EventSpec(cls=cls, gate=gate, decisions=frozenset(decisions.split()), fields=own, **more)


_gate = partial(_watch, gate=True, decisions=_BLOCKS)  # an event before something that can still be prevented
_SUBAGENT = MappingProxyType({"subagent_id": "agent_id", "subagent_type": "agent_type"})
_COMPACTIONS = ("manual", "auto")

_ROWS = (
    _gate(kinds.PreToolUse, "input context", decisions="pass allow ask defer deny", decides="permission",
          carries=_MODE_AND_EFFORT, audited=True),
    _watch(kinds.PostToolUse, "output mcp_output context classifier_context", _BLOCKS, carries=_MODE_AND_EFFORT,
           nulls=("tool_response",), snake=MappingProxyType({"tool_result": "tool_response"}), audited=True),
    _watch(kinds.PostToolUseFailure, "context", _BLOCKS, carries=_MODE_AND_EFFORT, audited=True),
    _watch(kinds.PostToolBatch, "context", _BLOCKS, carries=_MODE_AND_EFFORT),
    _watch(kinds.Notification, "context", reported=False),
    _gate(kinds.UserPromptSubmit, "context session_title suppress_original_prompt", stdout="context", carries=_MODE,
          timeout=30.0, audited=True),
    _gate(kinds.UserPromptExpansion, "context suppress_original_prompt", stdout="context", carries=_MODE),
    _gate(kinds.SessionStart, "context initial_user_message session_title watch_paths reload_skills",
          stdout="context", env_file=True, subjects=("startup", "resume", "clear", "compact", "fork")),
    _watch(kinds.SessionEnd, timeout=1.5, reported=False,
           subjects=("clear", "resume", "logout", "prompt_input_exit", "other")),
    _watch(kinds.Stop, "context keep_going", carries=_MODE_AND_EFFORT, audited=True),
    _watch(kinds.StopFailure, carries=frozenset({"effort"}), reported=False, audited=True),
    _gate(kinds.SubagentStart, "context", snake=_SUBAGENT, audited=True),
    _watch(kinds.SubagentStop, "context keep_going", carries=_MODE_AND_EFFORT, snake=_SUBAGENT, audited=True),
    _gate(kinds.PreCompact, "context", unsaid=frozenset({"context"}), stdout="context",
          nulls=("custom_instructions",), subjects=_COMPACTIONS, reported=False, audited=True),
    _watch(kinds.PostCompact, subjects=_COMPACTIONS, reported=False),
    _gate(kinds.PreModelSwitch, decisions="pass allow ask deny", decides="permission", nulls=("requested_model",)),
    _watch(kinds.PostModelSwitch, "context", stdout="context", nulls=("requested_model",)),
    _gate(kinds.PermissionRequest, "input updated_permissions interrupt", decides="request", carries=_MODE_AND_EFFORT,
          audited=True),
    _watch(kinds.PermissionDenied, "retry", carries=_MODE_AND_EFFORT, audited=True),
    _watch(kinds.Setup, "context", env_file=True, subjects=("init", "maintenance")),
    _watch(kinds.TeammateIdle, "keep_going"),
    _gate(kinds.TaskCreated, stops=False, audited=True),
    _gate(kinds.TaskCompleted, stops=False, audited=True),
    _gate(kinds.Elicitation, "action content", reported=False),
    _gate(kinds.ElicitationResult, "action content", reported=False),
    _gate(kinds.ConfigChange, reported=False,
          subjects=("user_settings", "project_settings", "local_settings", "policy_settings", "skills")),
    _gate(kinds.WorktreeCreate, "worktree_path", required=frozenset({"worktree_path"}), stdout="worktree_path",
          reported=False),
    _watch(kinds.WorktreeRemove, reported=False),
    _watch(kinds.InstructionsLoaded, reported=False,
           subjects=("session_start", "nested_traversal", "path_glob_match", "include", "compact")),
    _watch(kinds.CwdChanged, "watch_paths", env_file=True, reported=False),
    _watch(kinds.FileChanged, "watch_paths", env_file=True, reported=False,
           snake=MappingProxyType({"file_event": "event"})),  # `event` is the event's own name there
    _watch(kinds.DirectoryAdded, reported=False),
    _watch(kinds.MessageDisplay, "display_content", timeout=10.0),
)  # fmt: skip

CATALOG = MappingProxyType({row.name: row for row in _ROWS})  # every event by its name on the wire

_OWN_ROWS = (
    _gate(kinds.PreModelCall, "context", reported=False),
    _gate(kinds.PostModelCall, "output", reported=False),
    _gate(kinds.PreOutput, "output", reported=False),
)

OWN_EVENTS = MappingProxyType({row.name: row for row in _OWN_ROWS})
"""Events that Claude Code does not have: Hookline's agent fires them if a hook listens, and no CLI ever sends one."""
_ALL = {**CATALOG, **OWN_EVENTS}

HookEvent = StrEnum("HookEvent", {name: name for name in CATALOG})  # type: ignore[misc]  # the names are the table's
"""The 33 names, for those who like to write `HookEvent.PreToolUse`."""


def spec_of(event: Event | type[Event] | str) -> EventSpec:
    """The row of an event, its class or its name; an unknown name is refused with the near ones."""
    name: Any = event if isinstance(event, str) else event.event_name
    try:
        return _ALL[name]
    except KeyError:
        raise UnknownEvent(str(name), tuple(_ALL)) from None
