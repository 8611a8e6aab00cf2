"""The warm interpreters of one engine: a script's first run is ordinary, and then an interpreter is kept for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from math import inf

from hookline.processes.fork_server import ServerPool
from hookline.processes.spawn import Child, ProcessSpec, entries_of, spawn
from hookline.runners.warm.parent import BOOT, WarmParent, shell_reports_signals
from hookline.runners.warm.plan import Interpreter, plan

LIMIT = 4
"""Interpreters kept warm at once; the one used longest ago makes room."""
IDLE = 300.0
"""Seconds without a run after which an interpreter is let go."""
END_LIMIT = 1.0
"""Seconds that an interpreter has to end."""


def enabled(setting: bool | None = None, environ: Mapping[str, str] = os.environ) -> bool:  # noqa: FBT001 - the setting is what it is about
    """Whether scripts run warm: as set, else unless `HOOKLINE_WARM=0`; never where there is no `fork`."""
    possible = hasattr(os, "fork") and hasattr(os, "setsid") and BOOT.is_file()
    return possible and (setting if setting is not None else environ.get("HOOKLINE_WARM", "1") != "0")


class WarmPython:
    """Starts programs, Python scripts among them in a fork of a warm interpreter."""

    def __init__(self, *, limit: int = LIMIT, idle: float = IDLE) -> None:
        self._pool: ServerPool[Interpreter, WarmParent] = ServerPool(limit=limit, idle=idle, retry=inf)
        self._closed = False

    async def launch(self, spec: ProcessSpec) -> Child:
        """Start a program: warm if it can be, else the ordinary way, and see to it that the next run is warm."""
        planned = plan(spec)
        if planned is None or entries_of(spec) is None:
            return await spawn(spec)
        parent = self._ready(planned.interpreter)
        if parent is not None:
            child = await parent.run(spec, planned)
            if child is not None:
                return child
        child = await spawn(spec)
        child.exit.add_done_callback(lambda _: self._prepare(planned.interpreter, spec))
        return child

    def _ready(self, python: Interpreter) -> WarmParent | None:
        parent = self._pool.servers.get(python)
        if parent is None or not parent.ready:
            return None
        if parent.loop is asyncio.get_running_loop() and parent.usable:
            return parent
        self._pool.let_go(python)
        return None

    def _prepare(self, python: Interpreter, spec: ProcessSpec) -> None:
        """Begin to keep an interpreter warm, unless it is or has been found impossible."""
        if self._closed or python in self._pool.servers or self._pool.has_failed(python):
            return
        try:
            parent = WarmParent(python, spec.environ())
        except OSError:
            self._pool.note_failure(python)
            return
        self._pool.keep(python, parent)
        parent.loop.run_in_executor(None, shell_reports_signals)

    async def warmed(self) -> None:
        """Wait until every interpreter that is getting warm is warm (for tests and benchmarks)."""
        for parent in self.parents:
            if not await parent.answered:
                await parent.ended

    @property
    def parents(self) -> tuple[WarmParent, ...]:
        """The interpreters that are kept."""
        return tuple(self._pool.servers.values())

    async def aclose(self) -> None:
        """Let go of every interpreter; none is left when this returns."""
        self._closed = True
        await self._pool.aclose(END_LIMIT)
