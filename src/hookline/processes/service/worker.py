"""A worker: a process that has imported what hooks need, and forks the processes that events run in.

It runs nothing of an event itself, has one thread, and ends with the connection to the service once its last event is
through. An event whose client has left is ended, with its processes.
"""

from __future__ import annotations

import _socket
import contextlib
import gc
import importlib
import os
import signal
import sys
import time

from hookline.core import template
from hookline.processes.service import client, spare

QUIET = 0.05
"""Seconds after an event began in which no process is forked ahead, as the agent wants the machine for itself."""
KILL_GRACE_SECONDS = 2.0
"""Seconds between asking the processes of an abandoned event to end and ending them."""


class WorkerEvent(template.Run):
    """One event under way; the client's connection, whose end ends it, is its only descriptor."""

    through: bool = False
    kill_at: float | None = None


class Worker(template.Template):
    """Forks a process for each event; one that can answer another event waits again."""

    quiet = QUIET
    running: dict[int, WorkerEvent]  # type: ignore[assignment]  # all of them are made by `taken`

    def __init__(self, service: _socket.socket) -> None:
        super().__init__(service)
        self.asked: list[str] = []
        self.slots: int = client.buffer("slots")

    def taken(self, data: bytes, fds: list[int]) -> WorkerEvent:
        self.asked = spare.rehearsable(data[8:])
        self.poll.register(fds[0], 0)
        return WorkerEvent(data[:8], fds)

    def heard(self, kind: bytes, pid: int, data: bytes, fds: list[int]) -> None:
        super().heard(kind, pid, data, fds)
        if kind in (spare.THROUGH, spare.AGAIN) and pid in self.running:
            self.running[pid].through, self.running[pid].kill_at = True, None
            if kind == spare.AGAIN:
                self.ended(pid, self.running.pop(pid), 0)
                self.waiting.add(pid)

    def due(self) -> list[float]:
        return [one.kill_at for one in self.running.values() if one.kill_at is not None]

    def look(self, ready: set[int]) -> None:
        left = [pid for pid, one in self.running.items() if one.fds and one.fds[0] in ready]
        super().look(ready)
        for pid, one in self.running.items():
            if one.kill_at is not None and one.kill_at <= time.monotonic():
                _signal_group(pid, signal.SIGKILL)
        for pid in left:
            if pid in self.running:
                self._abandon(pid, self.running[pid])

    def ended(self, pid: int, run: template.Run, status: int) -> None:
        assert isinstance(run, WorkerEvent)
        if run.kill_at is not None:
            _signal_group(pid, signal.SIGKILL)
        self._hang_up(run)
        code = 0 if run.through else os.waitstatus_to_exitcode(status)
        took = int((time.monotonic() - run.begun) * 1e6)
        self.say(b"done", b"%d %d %d" % (int.from_bytes(run.data, "big"), took, code))

    def _hang_up(self, run: WorkerEvent) -> None:
        for fd in run.fds:
            self.poll.unregister(fd)
            connection = _socket.socket(fileno=fd)
            if not run.through:
                with contextlib.suppress(OSError):  # the other end has gone
                    connection.shutdown(_socket.SHUT_RDWR)  # also if what the event left behind still holds it open
            connection.close()
        run.fds = []

    def _abandon(self, pid: int, run: WorkerEvent) -> None:
        """The client has gone: an event that is not through is ended, with what it started."""
        self._hang_up(run)
        if not run.through:
            _signal_group(pid, signal.SIGTERM)
            run.kill_at = time.monotonic() + KILL_GRACE_SECONDS


def _signal_group(pid: int, number: int) -> None:
    for send, target in ((os.killpg, pid), (os.kill, pid)):
        with contextlib.suppress(OSError):  # it has gone, or has not made its group yet
            send(target, number)


def loaded_files() -> list[str]:
    """The files that make this process what it is; of the standard library, only where it lies."""
    return list(dict.fromkeys([sys.executable, os.__file__, *template.files_of(list(sys.modules.values()))]))


def main(entry: str, fd: int) -> None:
    """Get warm, say so, and serve: `entry` is a module with a `main`, and with the names of what to import ahead."""
    gc.disable()
    spare.redirect_to_devnull()
    resident = importlib.import_module(entry)
    for name in resident.PRELOAD:
        with contextlib.suppress(ImportError):  # an extra that is not there; a command that needs it will say so
            importlib.import_module(name)
    os.environ["XDG_STATE_HOME"] = os.devnull  # a rehearsal is not an event: no fleet judges or records it
    spare.rehearse(resident.main, *spare.REHEARSALS)
    gc.collect()
    gc.freeze()
    worker = Worker(_socket.socket(fileno=fd))
    worker.announce(loaded_files())
    worker.serve()
    try:
        spare.Spare(worker, worker.slots, resident.main).serve(worker.asked)
    finally:
        os._exit(70)
