"""Which policy each machine should have: a rollout goes to a share of the fleet first, then to all. Pure.

Whether a machine is among the first is a function of its name and the version, so every machine knows by itself, and
another version tries itself on others.
"""

from __future__ import annotations

import hashlib

import msgspec


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """The wanted state: `version` for the first `share` of the machines, `stable` for the rest."""

    version: int
    digest: str
    share: float = 1.0
    stable: int = 0
    stable_digest: str = ""
    message: str = ""
    started: str = ""

    @property
    def complete(self) -> bool:
        """Whether it has reached everybody."""
        return self.share >= 1.0

    def wanted(self, machine: str) -> tuple[int, str]:
        """The version and digest that a machine should have; version 0 is none."""
        if self.complete or place(machine, self.version) < self.share:
            return self.version, self.digest
        return self.stable, self.stable_digest


def place(machine: str, version: int) -> float:
    """Where a machine stands in the order of a rollout, from 0 to 1."""
    mixed = hashlib.sha256(f"{version}:{machine}".encode()).digest()
    return int.from_bytes(mixed[:8], "big") / (1 << 64)


def first(rollout: Rollout | None, version: int, digest: str, share: float, **about: str) -> Rollout:
    """A new rollout: what is stable so far is what the last one had brought to everybody."""
    stable, stable_digest = (0, "")
    if rollout is not None:
        done = rollout.complete
        stable = rollout.version if done else rollout.stable
        stable_digest = rollout.digest if done else rollout.stable_digest
    return Rollout(version=version, digest=digest, share=share, stable=stable, stable_digest=stable_digest, **about)


def widened(rollout: Rollout, share: float = 1.0) -> Rollout:
    """The same version for more machines; it never becomes fewer."""
    return msgspec.structs.replace(rollout, share=max(rollout.share, share))
