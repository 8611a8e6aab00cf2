"""Events of Hookline's own, around a call of the model and the agent's last words; Claude Code has no such events."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from hookline.events.base import Event


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
