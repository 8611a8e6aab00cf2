"""The warm interpreters of one engine: who is warm, who gets warm next, who is let go."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Mapping

from hookline.processes.spawn import Child, ProcessSpec, entries_of, spawn
from hookline.runners.warm.parent import BOOT, WarmParent, shell_reports_signals
from hookline.runners.warm.plan import Interpreter, plan

LIMIT = 4
"""Interpreters kept warm at once; the one used longest ago makes room."""
IDLE = 300.0
"""Seconds without a run after which an interpreter is let go."""


def enabled(setting: bool | None = None, environ: Mapping[str, str] = os.environ) -> bool:  # noqa: FBT001 - the setting is what it is about
    """Whether scripts run warm: as set, else unless `HOOKLINE_WARM=0`; never where there is no `fork`."""
    possible = hasattr(os, "fork") and hasattr(os, "setsid") and BOOT.is_file()
    return possible and (setting if setting is not None else environ.get("HOOKLINE_WARM", "1") != "0")


class WarmPython:
    """Starts programs, Python scripts among them in a fork of a warm interpreter."""

    def __init__(self, *, limit: int = LIMIT, idle: float = IDLE) -> None:
        self._limit = limit
        self._idle = idle
        self._parents: OrderedDict[Interpreter, WarmParent] = OrderedDict()
        self._leaving: set[WarmParent] = set()
        self._warming: dict[Interpreter, asyncio.Task[None]] = {}
        self._impossible: set[Interpreter] = set()
        self._timer: asyncio.TimerHandle | None = None
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
        child.exit.add_done_callback(lambda _: self.prepare(planned.interpreter, spec))
        return child

    def _ready(self, python: Interpreter) -> WarmParent | None:
        parent = self._parents.get(python)
        if parent is None:
            return None
        if not parent.usable:
            del self._parents[python]
            self._let_go(parent)
            return None
        self._parents.move_to_end(python)
        return parent

    # ---- getting warm

    def prepare(self, python: Interpreter, spec: ProcessSpec) -> None:
        """Begin to keep an interpreter warm, unless it is or has been found impossible."""
        if self._closed or python in self._parents or python in self._warming or python in self._impossible:
            return
        task = asyncio.get_running_loop().create_task(self._warm(python, spec.environ()))
        self._warming[python] = task
        task.add_done_callback(lambda _: self._warming.pop(python, None))

    async def warmed(self) -> None:
        """Wait until every interpreter that is getting warm is warm (for tests and benchmarks)."""
        while self._warming:
            await asyncio.wait(tuple(self._warming.values()))

    async def _warm(self, python: Interpreter, env: dict[str, str]) -> None:
        await asyncio.to_thread(shell_reports_signals)
        parent = await WarmParent.start(python, env)
        if parent is None:
            self._impossible.add(python)
        elif self._closed:
            await parent.aclose()
        else:
            self._keep(python, parent)

    def _keep(self, python: Interpreter, parent: WarmParent) -> None:
        self._parents[python] = parent
        while len(self._parents) > self._limit:
            _, oldest = self._parents.popitem(last=False)
            self._let_go(oldest)
        if self._timer is None:
            self._timer = parent.loop.call_later(self._idle / 2, self._look_for_idle, parent.loop)

    # ---- letting go

    def _let_go(self, parent: WarmParent) -> None:
        """Give it no more work, and remember it until it has gone."""
        self._leaving.add(parent)
        parent.ended.add_done_callback(lambda _: self._leaving.discard(parent))
        parent.retire()

    def _look_for_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for python, parent in tuple(self._parents.items()):
            if parent.loop is not loop or (not parent.busy and loop.time() - parent.used >= self._idle):
                del self._parents[python]
                self._let_go(parent)
        if self._parents:
            self._timer = loop.call_later(self._idle / 2, self._look_for_idle, loop)

    @property
    def parents(self) -> tuple[WarmParent, ...]:
        """The interpreters that are warm now."""
        return tuple(self._parents.values())

    async def aclose(self) -> None:
        """Let go of every interpreter; none is left when this returns."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in tuple(self._warming.values()):
            task.cancel()
        await asyncio.gather(*self._warming.values(), return_exceptions=True)
        loop = asyncio.get_running_loop()
        parents, self._parents = self._parents, OrderedDict()
        for parent in (*parents.values(), *self._leaving):
            if parent.loop is loop:
                await parent.aclose()
            else:
                parent.close()
