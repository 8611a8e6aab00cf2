"""The warm interpreters of one engine: a script's first run is ordinary, and then an interpreter is kept for it."""

# ruff: noqa: PTH109, PTH118, PTH120 - on every run's way: plain paths cost a tenth
from __future__ import annotations

import asyncio
import functools
import itertools
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from math import inf
from pathlib import Path

from hookline.processes.fork_server import ForkServer, ServerPool, write_file
from hookline.processes.loop import when_gone
from hookline.processes.spawn import Child, Pipes, ProcessSpec, entries_of, spawn
from hookline.processes.tree import MARKER
from hookline.runners.warm.plan import Interpreter, WarmPlan, plan

BOOT = Path(__file__).with_name("_boot") / "importlib_bootstrap.py"
LIMIT = 4
"""Interpreters kept warm at once; the one used longest ago makes room."""
IDLE = 300.0
"""Seconds without a run after which an interpreter is let go."""
END_LIMIT = 1.0
"""Seconds that an interpreter has to end."""
HELLO_LIMIT = 10.0
"""Seconds an interpreter may take to start up."""
ANSWER_LIMIT = 2.0
"""Seconds a parent may take to fork; after that it is replaced and the run is ordinary."""

SILENT = frozenset({signal.SIGINT, signal.SIGPIPE})
"""Signals that a shell says nothing about."""


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


class WarmParent(ForkServer):
    """A Python that has started up and forks on request."""

    def __init__(self, python: Interpreter, env: Mapping[str, str]) -> None:
        outer = env.get(MARKER, "").rpartition("/")[0]  # ending a run must not end its parent
        boot = {**env, MARKER: outer} if outer else {name: env[name] for name in env if name != MARKER}
        super().__init__((python.name, *python.flags, str(BOOT)), boot, python.file)
        self._ids = itertools.count()
        self._starting: dict[int, asyncio.Future[int]] = {}
        self._running: dict[int, _Running] = {}
        late = self.loop.call_later(HELLO_LIMIT, self.kill)
        self.answered.add_done_callback(lambda _: late.cancel())

    @property
    def usable(self) -> bool:
        """Whether it is warm, wanted, and still what would be started today."""
        return not self.retired and self.fresh

    async def run(self, spec: ProcessSpec, planned: WarmPlan) -> Child | None:
        """Fork for one run; None if the parent did not, in which case nothing of the run has happened."""
        name = next(self._ids)
        started = self._starting[name] = self.loop.create_future()
        pipes = Pipes()
        go, theirs = socket.socketpair()
        order = write_file(_order(spec, planned))
        late = self.loop.call_later(ANSWER_LIMIT, self.kill)
        try:
            self.send(name.to_bytes(8, "big"), (*pipes.theirs, theirs.fileno(), order))
            pid = await started
            go.send(b"g")
        except BaseException as problem:
            go.close()
            pipes.close()
            if not isinstance(problem, OSError):
                raise
            self.kill()
            return None
        finally:
            late.cancel()
            self._starting.pop(name)
            theirs.close()
            os.close(order)
        pipes.close_theirs()
        child = Child(pid, *pipes.ours, self.loop.create_future(), warm=True)
        self._running[name] = _Running(self.loop, child, go, in_shell=planned.shell and shell_reports_signals())
        return child

    def handle(self, word: bytes, rest: bytes) -> None:
        """`started ID PID` or `exited ID STATUS`."""
        if word == b"ready":
            super().handle(word, rest)
            return
        name, number = map(int, rest.split())
        if word == b"exited":
            run = self._running.pop(name, None)
            if run is not None:
                run.set_exit_status(number)
        elif name in self._starting and not self._starting[name].done():
            self._starting[name].set_result(number)

    def lost(self) -> None:
        """Runs not begun are begun elsewhere; how the others end can no longer be known."""
        for waiting in self._starting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError("the warm interpreter has gone"))
        for run in self._running.values():
            run.wait_until_gone()
        self._running.clear()


def _order(spec: ProcessSpec, planned: WarmPlan) -> bytes:
    """What a run is told: its folder, interpreter, first entry of the path, words, marker and environment."""
    cwd = spec.cwd or os.getcwd()
    script = os.path.join(cwd, planned.words[planned.before])
    fields = [cwd, planned.interpreter.file, os.path.dirname(os.path.realpath(script)), str(planned.before)]
    fields += [str(len(planned.words)), *planned.words, spec.marker.rpartition("/")[2]]
    entries = entries_of(spec) or []
    if planned.shell:  # what the skipped shell would have seen to
        entries.append(os.fsencode(f"PWD={os.path.realpath(cwd)}"))
    return b"\0".join([os.fsencode("\0".join(fields)), *entries])


@functools.cache
def shell_reports_signals() -> bool:
    """Whether `/bin/sh -c` waits for its last command and says what it died of, rather than putting it in its place."""
    asked = subprocess.run(("/bin/sh", "-c", "/bin/sh -c 'kill -TERM $$'"), capture_output=True, check=False)
    return asked.returncode >= 0


class _Running:
    """One run: its return code comes from the run itself, at its very end, or from the parent that reaped it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, child: Child, go: socket.socket, *, in_shell: bool) -> None:
        self.loop, self.child, self.go, self._in_shell = loop, child, go, in_shell
        go.setblocking(False)  # noqa: FBT003 - the socket's own signature
        loop.add_reader(go, self._reported)

    def _reported(self) -> None:
        try:
            said = self.go.recv(16)
        except OSError:
            said = b""
        self._hang_up()
        if said.endswith(b"\n"):
            self.ended(int(said))

    def _hang_up(self) -> None:
        if self.go.fileno() >= 0:
            self.loop.remove_reader(self.go)
            self.go.close()

    def ended(self, code: int | None) -> None:
        self._hang_up()
        if not self.child.exit.done():
            self.child.exit.set_result(code)

    def set_exit_status(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and self._in_shell and not self.child.exit.done():  # the shell that we skip would have said so
            words = signal.strsignal(-code) or f"Signal {-code}"
            dumped = " (core dumped)" if os.WCOREDUMP(status) else ""
            self.child.last_words = b"" if -code in SILENT else f"{words}{dumped}\n".encode()
            code = 128 - code
        self.ended(code)

    def wait_until_gone(self) -> None:
        """The parent will not tell us its return code any more: wait until it has gone, and call the code unknown."""
        when_gone(self.child.pid, self.loop, lambda: self.ended(None))
