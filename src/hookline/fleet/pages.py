"""The fleet for the console: its machines and its rollouts, as the hub sees them, read again every two seconds."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from hookline.errors import FleetError
from hookline.fleet.administrator import Administrator
from hookline.fleet.ledger import Ledger
from hookline.fleet.overview import MachineRow
from hookline.fleet.rollout import Rollout

SECONDS = 2.0


class RolloutRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a rollout, and how the machines that should have its version stand."""

    version: int
    share: float
    stable: int
    message: str
    started: str
    current: bool
    wanted: int
    in_force: int
    refused: tuple[str, ...]


class FleetPages:
    """What the console's Machines and Rollouts ask for; `problem` says why it may be old."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem: str = "the hub has not answered yet"
        self._rows: Sequence[MachineRow] = ()
        self._steps: Sequence[Rollout] = ()

    async def follow(self) -> None:
        """Ask the hub again and again; if it goes away, what it said last is shown, and that it is away."""
        while True:
            try:
                hub = await Administrator.connect(self.folder)
            except FleetError as problem:
                self.problem = str(problem)
                await asyncio.sleep(SECONDS)
                continue
            try:
                await self._read(hub)
            finally:
                await hub.close()

    async def _read(self, hub: Administrator) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            while True:
                try:
                    self._rows, self._steps = await hub.rows(), await hub.rollouts()
                except Exception as problem:  # noqa: BLE001 - whatever it was, it is shown, and asked again
                    self.problem = f"the hub does not answer: {problem}; is `hookline fleet hub` running?"
                    return
                self.problem = ""
                await asyncio.sleep(SECONDS)

    def logs(self) -> list[Path]:
        """The mirrors."""
        ledger = Ledger(self.folder / "audit")
        return [ledger.mirror(machine).path for machine in ledger.machines()]

    def machines(self) -> dict[str, Any]:
        """One row for each machine, those that need attention first."""
        return {"problem": self.problem, "machines": [_shown(row) for row in self._rows]}

    def rollouts(self) -> dict[str, Any]:
        """Every step, the newest first."""
        return {"problem": self.problem, "rollouts": steps(self._steps, self._rows)}


def _shown(row: MachineRow) -> dict[str, Any]:
    return {**msgspec.to_builtins(row), "ok": row.ok, "hooked": row.hooked, "proven": row.proven}


def steps(history: Sequence[Rollout], rows: Sequence[MachineRow]) -> list[RolloutRow]:
    """How each step of the rollouts stands, the newest first."""
    wanted = Counter(row.wanted for row in rows)
    in_force = Counter(row.policy for row in rows)
    refused = [(row.wanted, f"{row.name}: {text}") for row in rows for text in row.problems if "refused" in text]
    return [
        RolloutRow(
            version=step.version, share=step.share, stable=step.stable, message=step.message, started=step.started,
            current=place == 0, wanted=wanted[step.version], in_force=in_force[step.version],
            refused=tuple(text for version, text in refused if version == step.version),
        )
        for place, step in enumerate(reversed(history))
    ]  # fmt: skip
