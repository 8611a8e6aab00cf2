"""What a machine tells the hub about itself, every half minute and whenever something changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's word on itself."""

    machine: str
    name: str
    time: str
    hookline: str
    policy: int = 0
    policy_digest: str = ""
    policy_since: str = ""
    refused: str = ""
    """Why the wanted policy is not in force, if it is not."""
    audit_seq: int = 0
    audit_hash: str = ""
    hosts: list[dict[str, Any]] = []
    """Which agents are installed there, hooked or not, proven or not."""

    def seconds_old(self, now: datetime) -> float:
        """How long ago this was said, by the machine's own clock: skew shows as an age that is off."""
        return (now - datetime.fromisoformat(self.time)).total_seconds()
