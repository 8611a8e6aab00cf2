"""Our end of one warm interpreter: start it, ask it for runs, hear how they ended."""

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
from pathlib import Path

from hookline.processes.exits import when_gone
from hookline.processes.fork_server import ForkServer, write_file
from hookline.processes.spawn import Child, Pipes, ProcessSpec, entries_of
from hookline.processes.tree import MARKER
from hookline.runners.warm.plan import Interpreter, WarmPlan

BOOT = Path(__file__).with_name("_boot") / "importlib_bootstrap.py"
HELLO_LIMIT = 10.0
"""Seconds an interpreter may take to start up."""
ANSWER_LIMIT = 2.0
"""Seconds a parent may take to fork; after that it is replaced and the run is ordinary."""

SILENT = frozenset({signal.SIGINT, signal.SIGPIPE})
"""Signals that a shell says nothing about."""


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

    async def run(self, spec: ProcessSpec, plan: WarmPlan) -> Child | None:
        """Fork for one run; None if the parent did not, in which case nothing of the run has happened."""
        name = next(self._ids)
        started = self._starting[name] = self.loop.create_future()
        pipes = Pipes()
        go, theirs = socket.socketpair()
        order = write_file(_order(spec, plan))
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
        self._running[name] = _Running(self.loop, child, go, in_shell=plan.shell and shell_reports_signals())
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


def _order(spec: ProcessSpec, plan: WarmPlan) -> bytes:
    """What a run is told: its folder, interpreter, first entry of the path, words, marker and environment."""
    cwd = spec.cwd or os.getcwd()
    script = os.path.join(cwd, plan.words[plan.before])
    fields = [cwd, plan.interpreter.file, os.path.dirname(os.path.realpath(script)), str(plan.before)]
    fields += [str(len(plan.words)), *plan.words, spec.marker.rpartition("/")[2]]
    entries = entries_of(spec) or []
    if plan.shell:  # what the skipped shell would have seen to
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
