"""How a turn ended, as a value."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct

from hookline.agent.messages import ToolUse, Usage


class TurnEnd(Struct, frozen=True, kw_only=True):
    """Why a turn is over; `reason` is the wire's `terminal_reason`."""

    text: str | None = None
    subtype: str = "success"
    is_error: bool = False
    reason: str = "completed"
    stop_reason: str | None = None
    deferred: ToolUse | None = None
    errors: tuple[str, ...] = ()
    #: the answer in the form that was asked for
    structured: Any = UNSET


def fail_turn(reason: str, why: str, subtype: str = "error_during_execution", **more: Any) -> TurnEnd:
    """The end of a turn that did not come to its own."""
    return TurnEnd(reason=reason, subtype=subtype, is_error=True, errors=(why,), **more)


class Result(TurnEnd, frozen=True, kw_only=True):
    """What one prompt came to: the last words, how it ended, what it cost and what was denied."""

    text: str = ""
    turns: int = 0
    duration_ms: int = 0
    api_ms: int = 0
    usage: Usage = Usage()
    denials: tuple[dict[str, Any], ...] = ()
    session_id: str = ""
    #: US dollars the session has cost so far, and what it used of which model
    cost_usd: float = 0.0
    model_usage: dict[str, dict[str, Any]] = {}
    #: what woke the agent, if no person typed the prompt
    origin: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether the agent came to its end by itself."""
        return not self.is_error
