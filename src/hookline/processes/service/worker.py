"""A worker: a process that has imported what hooks need, and forks the processes that events run in.

It runs nothing of an event itself, has one thread, and ends with the connection to the service once its last event is
through. Whoever is no longer there to be answered has their event's processes ended.
"""

from __future__ import annotations

import _socket
import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time

from hookline.processes.service import client, event_process, frames, spare
from hookline.processes.stamps import Stamps

TARGET = "hookline.cli.main"
PRELOAD = (
    "argparse", "asyncio", "json", "msgspec", "hookline.api", "hookline.core.engine", "hookline.core.wire.claude",
    "hookline.core.wire.dialects", "hookline.guards", "hookline.settings", "hookline.settings.trust.store",
    "hookline.runners.command", "hookline.runners.function", "hookline.cli.commands.guard",
    "hookline.cli.commands.answer", "hookline.cli.commands.pipe", "hookline.cli.commands.fire", "hookline.cli.services",
    "hookline.hosts.user_rules", "hookline.fleet.enforce",
)  # fmt: skip
"""What commands import when they run, imported ahead."""
QUIET = 0.05
"""Seconds after an event began in which no process is forked ahead, as the agent wants the machine for itself."""
KILL_GRACE_SECONDS = 2.0
"""Seconds between asking the processes of an abandoned event to end and ending them."""


class Running:
    """One event under way: its process, and the client's connection, whose end ends the event."""

    connection: int
    name: int

    def __init__(self, name: int, connection: int) -> None:
        self.name, self.connection = name, connection
        self.begun: float = time.monotonic()
        self.through = False
        self.kill_at: float | None = None


class Worker:
    """The process that forks: one ahead, so that an event finds its process waiting.

    The process that waits takes the next connection from the service itself, shows it to the worker, and is an event
    from then on. If nobody waits, the worker forks as soon as somebody is needed, or when it has become quiet.
    """

    run: event_process.Run
    service: _socket.socket
    wake_r: int
    wake_w: int
    ours: socket.socket
    theirs: socket.socket
    lost: int

    def __init__(self, service: _socket.socket, run: event_process.Run) -> None:
        self.service, self.run = service, run
        self.asked: list[str] = []
        self.running: dict[int, Running] = {}
        self.waiting: set[int] = set()
        self.lost = 0
        self.fork_at: float = 0.0
        self.open: bool = True
        self.seats: int = client.buffer("seats")
        self.wake_r, self.wake_w = _pipe()
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ours.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        self.poll: select.poll = select.poll()
        for fd in (self.ours.fileno(), self.wake_r):
            self.poll.register(fd, select.POLLIN)

    def serve(self) -> None:
        """Have a process wait for events; ends when the service has gone and the last event is through."""
        while self.open or self.running:
            needed = self.open and not self.waiting
            if needed and self.fork_at <= time.monotonic():
                self._fork_spare()
                continue
            ready = self._poll(watch_service=needed)
            if self.service.fileno() in ready:
                self.fork_at = 0.0
            left = [one for one in self.running.values() if one.connection in ready]
            self._look()
            for one in left:
                self._abandon(one)

    def _poll(self, *, watch_service: bool) -> set[int]:
        if not watch_service:
            return {fd for fd, _ in self.poll.poll(self._patience())}
        self.poll.register(self.service.fileno(), select.POLLIN)
        try:
            return {fd for fd, _ in self.poll.poll(self._patience(self.fork_at))}
        finally:
            self.poll.unregister(self.service.fileno())

    def _patience(self, *due: float) -> int | None:
        times = (*due, *(one.kill_at for one in self.running.values() if one.kill_at is not None))
        return max(0, int((min(times) - time.monotonic()) * 1000) + 1) if times else None

    # ---- one event

    def _fork_spare(self) -> None:
        try:
            pid = os.fork()
        except OSError:  # too many processes: the service starts another worker when there is room
            self._close()
            return
        if not pid:
            try:
                self._become_spare()
            finally:
                os._exit(70)
        self.waiting.add(pid)

    def _become_spare(self) -> None:
        for fd in (self.wake_r, self.wake_w, self.ours.detach(), *(one.connection for one in self.running.values())):
            if fd >= 0:
                os.close(fd)
        spare.Spare(self.service, self.theirs, self.seats, self.run).serve(self.asked)

    # ---- what became of it

    def _look(self) -> None:
        self._hear()
        _drain(self.wake_r)
        self._reap()
        for pid, one in self.running.items():
            if one.kill_at is not None and one.kill_at <= time.monotonic():
                _signal_group(pid, signal.SIGKILL)

    def _hear(self) -> None:
        while True:
            try:
                message, ancillary, _, _ = self.ours.recvmsg(13 + frames.ASKED, socket.CMSG_SPACE(4))
            except BlockingIOError:
                return
            pid, name = int.from_bytes(message[1:5], "big"), int.from_bytes(message[5:13], "big")
            if message[:1] == spare.TAKEN:
                self.asked = spare.rehearsable(message[13:])
                self._taken(pid, name, frames.attached(ancillary))
            elif pid in self.running:
                self.running[pid].through, self.running[pid].kill_at = True, None
                if message[:1] == spare.AGAIN:
                    self._event_ended(pid, self.running.pop(pid), 0)
                    self.waiting.add(pid)

    def _taken(self, pid: int, name: int, fds: list[int]) -> None:
        """The process that waited is an event now."""
        self.waiting.discard(pid)
        self.lost = 0
        self.fork_at = time.monotonic() + QUIET
        self.running[pid] = Running(name, fds[0])
        os.set_inheritable(fds[0], False)
        self.poll.register(fds[0], 0)

    def _reap(self) -> None:
        while self.running or self.waiting:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            self._hear()  # it may have told us in its last moment
            code = os.waitstatus_to_exitcode(status)
            if pid in self.waiting:
                self._spare_ended(pid, code)
            elif pid in self.running:
                self._event_ended(pid, self.running.pop(pid), code)

    def _spare_ended(self, pid: int, code: int) -> None:
        self.waiting.discard(pid)
        self.lost += code != 0
        if code == spare.SERVICE_GONE or self.lost > 3:
            self._close()

    def _event_ended(self, pid: int, one: Running, code: int) -> None:
        if one.kill_at is not None:
            _signal_group(pid, signal.SIGKILL)
        self._hang_up(one)
        self._tell("done", one.name, int((time.monotonic() - one.begun) * 1e6), 0 if one.through else code)

    def _hang_up(self, one: Running) -> None:
        if one.connection >= 0:
            self.poll.unregister(one.connection)
            connection = _socket.socket(fileno=one.connection)
            if not one.through:
                _end_for_all(connection)
            connection.close()
            one.connection = -1

    def _abandon(self, one: Running) -> None:
        """The client has gone: an event that is not through is ended, with what it started."""
        for pid, running in self.running.items():
            if running is one:
                self._hang_up(one)
                if not one.through:
                    _signal_group(pid, signal.SIGTERM)
                    one.kill_at = time.monotonic() + KILL_GRACE_SECONDS

    # ---- the service

    def _tell(self, *words: object) -> None:
        try:
            self.service.send(" ".join(map(str, words)).encode() + b"\n")
        except OSError:
            self.open = False

    def _close(self) -> None:
        """Take no more events; whoever still waits for one is not needed."""
        self.open = False
        for pid in self.waiting:
            os.kill(pid, signal.SIGKILL)


def _end_for_all(connection: _socket.socket) -> None:
    """End a connection even if a process that the event left behind still holds it open."""
    try:
        connection.shutdown(_socket.SHUT_RDWR)
    except OSError:
        pass  # the other end has gone


def _signal_group(pid: int, number: int) -> None:
    for send, target in ((os.killpg, pid), (os.kill, pid)):
        try:
            send(target, number)
        except OSError:
            continue  # it has gone, or has not made its group yet


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for fd in ends:
        os.set_blocking(fd, False)
    return ends


def _drain(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return b""


def loaded_files() -> list[str]:
    """The files that make this process what it is; of the standard library, only where it lies."""
    stdlib = os.path.dirname(os.__file__)
    files = [sys.executable, os.__file__]
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and (not file.startswith(stdlib + os.sep) or "-packages" in file[len(stdlib) :]):
            files.append(file)
    return list(dict.fromkeys(files))


def main(fd: int) -> None:
    """Get warm, say so, and serve."""
    began = time.time()
    gc.disable()
    spare.redirect_to_devnull()
    for name in PRELOAD:
        with contextlib.suppress(ImportError):  # an extra that is not there; who needs it will say so
            importlib.import_module(name)
    run = importlib.import_module(TARGET).main
    os.environ["XDG_STATE_HOME"] = os.devnull  # a rehearsal is nobody's event: no fleet judges or records it
    spare.rehearse(run, *spare.REHEARSALS)
    gc.collect()
    gc.freeze()
    service = _socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    worker = Worker(service, run)
    if len(os.listdir("/proc/self/task")) > 1 if sys.platform == "linux" else False:
        sys.exit("a thread runs after importing: forking would not be safe")
    service.sendall(f"ready {Stamps.take(loaded_files(), began).to_json()}\n".encode())
    worker.serve()
    os._exit(0)
