"""Which agents are on this machine, hooked or not, proven or not: what it tells the hub."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from hookline.hosts.install.survey import HostRow, survey

MINUTES = 10.0


class Agents:
    """Asked again every ten minutes: a look costs a process for each agent."""

    def __init__(self) -> None:
        self._known: list[dict[str, Any]] = []
        self._looked = float("-inf")

    def __call__(self) -> list[dict[str, Any]]:
        """Every agent that is installed, or whose files ask Hookline."""
        if time.monotonic() - self._looked > MINUTES * 60:
            self._known = [_about(row) for row in survey() if row.version or row.hooked]
            self._looked = time.monotonic()
        return self._known


def _about(row: HostRow) -> dict[str, Any]:
    """One agent, in a few words; a proof counts for its version, or where no binary is found for the one it names."""
    proven = row.proven or (not row.version and row.proof is not None and row.proof.holds)
    said = {"host": row.host.name, "version": row.version, "hooked": list(row.hooked)}
    return {**said, "proven": proven, "proof": msgspec.to_builtins(row.proof)}
