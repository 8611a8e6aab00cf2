"""Events of subagents, teammates and the tasks they share."""

from __future__ import annotations

from typing import Any, ClassVar

from hookline.events.base import Event


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
