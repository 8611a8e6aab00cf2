"""What a machine tells the hub about itself, every half minute and whenever something changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

MOST_STATUS = 1 << 16
"""A status larger than this is not taken."""


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
    checkpoint: str = ""
    """A checkpoint over its audit log, for the hub to compare and to cosign."""
    instance: str = ""
    """Which process of the machine says this."""
    hosts: list[dict[str, Any]] = []
    """Which agents are installed there, hooked or not, proven or not."""
    received: str = ""
    """When the server took it, by the server's clock; set at the hub, whatever the machine says."""

    def seconds_old(self, now: datetime) -> float:
        """How long ago this was said, by the hub's clock."""
        return (now - datetime.fromisoformat(self.received or self.time)).total_seconds()

    def clock_ahead(self) -> float:
        """By how many seconds the machine's clock is ahead of the hub's; negative if it is behind."""
        if not self.received:
            return 0.0
        return (datetime.fromisoformat(self.time) - datetime.fromisoformat(self.received)).total_seconds()


def read_status(machine: str, data: bytes, received: datetime | None) -> Status | None:
    """What a machine said, with the time when the server took it; `None` for what cannot be read, whatever it is."""
    try:
        status = msgspec.json.decode(data, type=Status)
        said = datetime.fromisoformat(status.time)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None
    if status.machine != machine or said.tzinfo is None:
        return None
    return msgspec.structs.replace(status, received=received.isoformat(timespec="milliseconds") if received else "")
