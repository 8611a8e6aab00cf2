"""What became of one hook's run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from hookline.replies import NOTHING, Decision, Reply


class Status(StrEnum):
    """How a run ended."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    BACKGROUND = "background"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One hook's reply or failure, with its time.

    `reply` already carries the consequence of a failure (a deny, where the hook fails closed), so merging never has to
    know why. `note` says what else a person should know, such as why a hook was skipped.
    """

    hook: str
    source: str = "code"
    event: str = ""
    status: Status = Status.OK
    reply: Reply = NOTHING
    ms: float = 0.0
    exit_code: int | None = None
    error: str | None = None
    note: str | None = None
    would: str | None = None
    """What a hook that is only evaluated would have decided."""
    stdout: str = ""
    stderr: str = ""

    @property
    def decision(self) -> Decision:
        """What it decided."""
        return self.reply.decision

    @property
    def ok(self) -> bool:
        """Whether the hook did its work."""
        return self.error is None

    def to_dict(self) -> dict[str, Any]:
        """The shape `hookline fire --json` prints."""
        return {
            "hook": self.hook, "source": self.source, "status": str(self.status), "decision": str(self.decision),
            "ms": round(self.ms, 3), "exit_code": self.exit_code, "error": self.error,
        }  # fmt: skip


class RunnerResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner brings back: the reply, and what else is known of the run."""

    reply: Reply | None = None
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""


Answer = RunnerResult | Reply | Mapping[str, Any] | None
"""What one run may come back with."""
