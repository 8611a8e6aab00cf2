"""What a proof says: one line for each thing that was tried or looked at."""

from __future__ import annotations

from typing import Any, NamedTuple

from hookline.hosts.host import Host

GOOD = ("enforced", "fired", "not tried")
"""What a line may say of something that is no cause for worry; a gate that was not tried is `not proven`."""


class Finding(NamedTuple):
    """One line of a proof: what was tried or looked at, and what came of it."""

    what: str
    status: str
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether it holds, or is nothing that a proof must show."""
        return self.status in GOOD


class ProofResult(NamedTuple):
    """What a proof found out about one host."""

    host: Host
    version: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether everything that is configured is enforced."""
        return bool(self.findings) and all(finding.good for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As JSON says it."""
        findings = [finding._asdict() for finding in self.findings]
        return {"host": self.host.name, "version": self.version, "holds": self.holds,
                "seconds": round(self.seconds, 1), "findings": findings}  # fmt: skip
