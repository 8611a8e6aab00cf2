"""How the whole fleet stands: one row per machine, and everything that is wrong, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from hookline.fleet.ledger import ChainProblem
from hookline.fleet.registry import Member
from hookline.fleet.rollout import Rollout
from hookline.fleet.status import Status

SILENT_SECONDS = 120.0
SKEW_SECONDS = 300.0
_UNHEARD = "never heard"


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
