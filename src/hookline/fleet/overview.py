"""The fleet as values: which policy each machine should have, what each says of itself, how the whole stands. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from hookline.fleet.ledger import ChainProblem
from hookline.fleet.members import Member

SILENT_SECONDS = 120.0
SKEW_SECONDS = 300.0
MOST_STATUS = 1 << 16
"""A status larger than this is not taken."""
_UNHEARD = "never heard"


# -- which policy: a rollout goes to a share of the fleet first, then to all -------------------------------------------
#
# Whether a machine is among the first is a function of its name and the version, so every machine knows by itself, and
# another version tries itself on others.


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


# -- what a machine tells the hub, every half minute and whenever something changed ------------------------------------


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's word on itself."""

    machine: str
    name: str
    time: str
    hookline: str
    policy: int = 0
    refused: str = ""
    """Why the wanted policy is not in force, if it is not."""
    audit_seq: int = 0
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


# -- how the fleet stands: one row per machine, and everything that is wrong, in words ---------------------------------


class MachineRow(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, as the hub sees it."""

    machine: str
    name: str
    seen: str
    silent: bool
    policy: int
    wanted: int
    records: int
    problems: tuple[str, ...]
    agents: tuple[dict[str, Any], ...]

    @property
    def hooked(self) -> int:
        """How many of its agents ask Hookline."""
        return sum(bool(agent.get("hooked")) for agent in self.agents)

    @property
    def proven(self) -> int:
        """On how many of them `hookline prove` has seen it hold."""
        return sum(bool(agent.get("proven")) for agent in self.agents)

    @property
    def ok(self) -> bool:
        """Whether it reports, has the policy it should have, and its chain holds."""
        return not self.silent and self.policy == self.wanted and not self.problems


def rows(
    members: Mapping[str, Member],
    statuses: Mapping[str, Status | None],
    *,
    rollout: Rollout | None,
    records: Mapping[str, int],
    breaks: Sequence[ChainProblem],
    now: datetime,
) -> list[MachineRow]:
    """The fleet, machines that need attention first."""
    made = [
        _row(member, statuses.get(member.machine, _UNHEARD), rollout, records.get(member.machine, 0), breaks, now=now)
        for member in members.values()
        if not member.revoked
    ]
    return sorted(made, key=lambda row: (row.ok, row.name))


def _row(
    member: Member, said: Status | str | None, rollout: Rollout | None, records: int, breaks: Sequence[ChainProblem],
    *, now: datetime,
) -> MachineRow:  # fmt: skip
    status = said if isinstance(said, Status) else None
    wanted = rollout.wanted(member.machine)[0] if rollout else 0
    problems = [one.text for one in breaks if one.machine == member.machine]
    age = status.seconds_old(now) if status else float("inf")
    if member.suspended:
        problems.append(f"cut off: {member.suspended}; `hookline fleet resume {member.machine}` lets it in again")
    if said is None:
        problems.append("what it says of itself cannot be read; is its Hookline newer than the hub's?")
    if status and status.refused:
        problems.append(f"policy refused: {status.refused}")
    ahead = status.clock_ahead() if status else 0.0
    if abs(ahead) > SKEW_SECONDS:
        where = "ahead of" if ahead > 0 else "behind"
        problems.append(f"its clock is {abs(ahead):.0f} s {where} the hub's; set it, or times in its records are off")
    return MachineRow(
        machine=member.machine,
        name=member.name,
        seen=(status.received or status.time) if status else "",
        silent=abs(age) > SILENT_SECONDS,
        policy=status.policy if status else 0,
        wanted=wanted,
        records=records,
        problems=tuple(problems),
        agents=tuple(status.hosts) if status else (),
    )
