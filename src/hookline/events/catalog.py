"""One row per event: what it is, what a matcher looks at, what a hook may answer.

`gate` says that the event comes before something that can still be prevented: there a failing hook counts as a deny.
`decisions` are the ones a reply may carry (any hook may say nothing, or allow, which is what happens anyway on events
that ask no permission); `fields` are the reply fields that not every event understands.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgspec

from hookline.errors import UnknownEvent
from hookline.events import agents, session, tools, workspace
from hookline.events.base import Event


class EventSpec(msgspec.Struct, frozen=True):
    """A row of the catalogue."""

    cls: type[Event]
    gate: bool
    decisions: frozenset[str]
    fields: frozenset[str]

    @property
    def name(self) -> str:
        """The event's name on the wire."""
        return self.cls.event_name

    @property
    def subject(self) -> str | None:
        """The field a matcher looks at, if any."""
        return self.cls.subject_field

    @property
    def about(self) -> str:
        """One sentence on what happened."""
        return (self.cls.__doc__ or "").partition("\n")[0]


_OBSERVES = "pass allow"
_BLOCKS = "pass allow deny"
_GATE, _WATCH = "gate", "watch"


def _row(cls: type[Event], kind: str, decisions: str, fields: str = "") -> EventSpec:
    return EventSpec(cls, kind == _GATE, frozenset(decisions.split()), frozenset(f"{fields} terminal_sequence".split()))


_GOING = "keep_going"

_ROWS = (
    _row(tools.PreToolUse, _GATE, "pass allow ask defer deny", "input context"),
    _row(tools.PostToolUse, _WATCH, _BLOCKS, "output mcp_output context classifier_context"),
    _row(tools.PostToolUseFailure, _WATCH, _BLOCKS, "context"),
    _row(tools.PostToolBatch, _WATCH, _BLOCKS, "context"),
    _row(session.Notification, _WATCH, _OBSERVES, "context"),
    _row(session.UserPromptSubmit, _GATE, _BLOCKS, "context session_title suppress_original_prompt"),
    _row(session.UserPromptExpansion, _GATE, _BLOCKS, "context suppress_original_prompt"),
    _row(session.SessionStart, _GATE, _BLOCKS,
         "context initial_user_message session_title watch_paths reload_skills"),
    _row(session.SessionEnd, _WATCH, _OBSERVES),
    _row(session.Stop, _WATCH, _OBSERVES, f"context {_GOING}"),
    _row(session.StopFailure, _WATCH, _OBSERVES),
    _row(agents.SubagentStart, _GATE, _BLOCKS, "context"),
    _row(agents.SubagentStop, _WATCH, _OBSERVES, f"context {_GOING}"),
    _row(session.PreCompact, _GATE, _BLOCKS, "context"),
    _row(session.PostCompact, _WATCH, _OBSERVES),
    _row(session.PreModelSwitch, _GATE, "pass allow ask deny"),
    _row(session.PostModelSwitch, _WATCH, _OBSERVES, "context"),
    _row(tools.PermissionRequest, _GATE, _BLOCKS, "input updated_permissions interrupt"),
    _row(tools.PermissionDenied, _WATCH, _OBSERVES, "retry"),
    _row(session.Setup, _WATCH, _OBSERVES, "context"),
    _row(agents.TeammateIdle, _WATCH, _OBSERVES, _GOING),
    _row(agents.TaskCreated, _GATE, _BLOCKS),
    _row(agents.TaskCompleted, _GATE, _BLOCKS),
    _row(session.Elicitation, _GATE, _BLOCKS, "action content"),
    _row(session.ElicitationResult, _WATCH, _BLOCKS, "action content"),
    _row(workspace.ConfigChange, _GATE, _BLOCKS),
    _row(workspace.WorktreeCreate, _GATE, _BLOCKS, "worktree_path"),
    _row(workspace.WorktreeRemove, _WATCH, _OBSERVES),
    _row(workspace.InstructionsLoaded, _WATCH, _OBSERVES),
    _row(workspace.CwdChanged, _WATCH, _OBSERVES, "watch_paths"),
    _row(workspace.FileChanged, _WATCH, _OBSERVES, "watch_paths"),
    _row(workspace.DirectoryAdded, _WATCH, _OBSERVES),
    _row(session.MessageDisplay, _WATCH, _OBSERVES, "display_content"),
)  # fmt: skip

CATALOG = MappingProxyType({row.name: row for row in _ROWS})
"""Every event by its name on the wire."""

HookEvent = StrEnum("HookEvent", {name: name for name in CATALOG})  # type: ignore[misc]  # the names are the table's
"""The 33 names, for those who like to write `HookEvent.PreToolUse`."""


def spec_of(event: Event | type[Event] | str) -> EventSpec:
    """The row of an event, its class or its name; an unknown name is refused with the near ones."""
    name: Any = event if isinstance(event, str) else event.event_name
    try:
        return CATALOG[name]
    except KeyError:
        raise UnknownEvent(str(name), tuple(CATALOG)) from None
