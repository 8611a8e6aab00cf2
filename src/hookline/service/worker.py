"""A worker: a process that has imported what hooks need, and forks for every event.

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
import tempfile
import time

from hookline.process import loop
from hookline.service import client, event, frames
from hookline.service.stamps import Stamps

TARGET = "hookline.cli.main"
PRELOAD = (
    "argparse", "asyncio", "json", "msgspec", "hookline.api", "hookline.engine", "hookline.wire.claude",
    "hookline.wire.dialects", "hookline.guards", "hookline.settings", "hookline.settings.trust",
    "hookline.runners.command", "hookline.runners.function", "hookline.cli.commands.guard",
    "hookline.cli.commands.answer", "hookline.cli.commands.pipe", "hookline.cli.commands.fire", "hookline.cli.services",
    "hookline.hosts.user_rules", "hookline.fleet.enforce",
)  # fmt: skip
"""What commands import when they run, imported ahead."""
EVENT = b"""{"hook_event_name": "PreToolUse", "session_id": "rehearsal", "transcript_path": "", "cwd": "/",
"tool_name": "Bash", "tool_input": {"command": "cd / && git -C x status -s | grep 'y' > /dev/null"}}"""
REHEARSALS = (
    ["guard", "commands", "--block", "rm -rf *", "--only", "git *", "--containing", "secret"],
    ["guard", "paths", "--confine", "auto", "--temporary", "--block", "sudo *"],
)
"""Commands that are run before the first event: what they import, compile and keep is there, and in place."""
PURE_GUARDS = ("approvals", "commands", "paths", "secrets")
"""Guards that leave nothing behind, so that what was asked last may be rehearsed before it is asked again."""
PADDING = 40
"""Variables that a client's environment has beyond a worker's, more or less."""
SETTLE, IDLE = 0.003, 0.03
"""Seconds that a spare process waits for an event before it rehearses what was asked last; and what was not."""
TAKEN, THROUGH = b"t", b"e"
"""What a process tells its worker: it has an event · the event is through."""
SERVICE_GONE = 71
MERCY = 2.0
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
    """The process that forks: always one ahead, so that an event finds its process waiting.

    The spare process takes the next connection from the service itself, shows it to the worker, and is an event from
    then on; the worker forks the next spare.
    """

    run: event.Run
    service: _socket.socket
    wake_r: int
    wake_w: int
    ours: socket.socket
    theirs: socket.socket
    lost: int
    spare: int

    def __init__(self, service: _socket.socket, run: event.Run) -> None:
        self.service, self.run = service, run
        self.asked: list[str] = []
        self.running: dict[int, Running] = {}
        self.spare = self.lost = 0
        self.open: bool = True
        self.wake_r, self.wake_w = _pipe()
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ours.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        self.poll: select.poll = select.poll()
        for fd in (self.ours.fileno(), self.wake_r):
            self.poll.register(fd, select.POLLIN)

    def serve(self) -> None:
        """Keep a spare process; ends when the service has gone and the last event is through."""
        while self.open or self.running:
            if self.open and not self.spare:
                self._fork_spare()
            for fd, _ in self.poll.poll(self._patience()):
                if fd not in (self.wake_r, self.ours.fileno()):
                    self._abandon(fd)
            self._look()

    def _patience(self) -> int | None:
        due = [one.kill_at for one in self.running.values() if one.kill_at is not None]
        return max(0, int((min(due) - time.monotonic()) * 1000) + 1) if due else None

    # ---- one event

    def _fork_spare(self) -> None:
        try:
            self.spare = os.fork()
        except OSError:  # too many processes: the service starts another worker when there is room
            self._close()
            return
        if not self.spare:
            try:
                self._become_spare()
            finally:
                os._exit(70)

    def _become_spare(self) -> None:
        event.reset_signals()
        for fd in (self.wake_r, self.wake_w, self.ours.detach(), *(one.connection for one in self.running.values())):
            if fd >= 0:
                os.close(fd)
        first = self.asked or REHEARSALS[0]
        for words in (first, *(each for each in REHEARSALS if each[:2] != first[:2])):
            if _readable(self.service, SETTLE if words is first else IDLE):
                break
            rehearse(self.run, words)  # writes to its memory now, so that the event finds it copied already
            loop.prepare()
        gc.freeze()  # what rehearsals have left is not looked through while somebody waits
        gc.enable()
        try:
            name, asked, connection, go = receive_handover(self.service)
        except (OSError, frames.Garbled):
            os._exit(SERVICE_GONE)
        os.setpgid(0, 0)
        self._show(TAKEN, name, asked, connection.fileno())
        self.service.close()
        event.answer(connection, go, self.run, self._show_through)

    def _show(self, what: bytes, name: int = 0, asked: bytes = b"", *fds: int) -> None:
        """Tell the worker what has become of this process."""
        message = what + os.getpid().to_bytes(4, "big") + name.to_bytes(8, "big") + asked
        self.theirs.sendmsg([message], frames.rights(list(fds)) if fds else [])

    def _show_through(self) -> None:
        with contextlib.suppress(OSError):  # a worker that was killed; the client must hear, or it would judge again
            self._show(THROUGH)

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
            if message[:1] == TAKEN:
                self.asked = rehearsable(message[13:])
                self._taken(pid, name, frames.attached(ancillary))
            elif pid in self.running:
                self.running[pid].through, self.running[pid].kill_at = True, None

    def _taken(self, pid: int, name: int, fds: list[int]) -> None:
        """The spare is an event now."""
        self.spare = self.lost = 0
        self.running[pid] = Running(name, fds[0])
        os.set_inheritable(fds[0], False)
        self.poll.register(fds[0], 0)

    def _reap(self) -> None:
        while self.running or self.spare:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            self._hear()  # it may have told us in its last moment
            code = os.waitstatus_to_exitcode(status)
            if pid == self.spare:
                self._spare_ended(code)
            elif pid in self.running:
                self._event_ended(pid, self.running.pop(pid), code)

    def _spare_ended(self, code: int) -> None:
        self.spare, self.lost = 0, self.lost + 1
        if code == SERVICE_GONE or self.lost > 3:
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

    def _abandon(self, connection: int) -> None:
        """The client has gone: an event that is not through is ended, with what it started."""
        self._look()
        for pid, one in self.running.items():
            if one.connection == connection:
                self._hang_up(one)
                if not one.through:
                    _signal_group(pid, signal.SIGTERM)
                    one.kill_at = time.monotonic() + MERCY

    # ---- the service

    def _tell(self, *words: object) -> None:
        try:
            self.service.send(" ".join(map(str, words)).encode() + b"\n")
        except OSError:
            self.open = False

    def _close(self) -> None:
        """Take no more events; whoever is waiting as a spare is not needed."""
        self.open = False
        if self.spare:
            os.kill(self.spare, signal.SIGKILL)


def receive_handover(service: _socket.socket) -> tuple[int, bytes, _socket.socket, int]:
    """One event from the service: its number, what is asked, the client's connection, and where it says to begin."""
    start, ancillary, _, _ = service.recvmsg(8 + frames.ASKED, _socket.CMSG_SPACE(2 * 4))
    fds = frames.attached(ancillary)
    if len(start) != 8 + frames.ASKED or len(fds) != 2:
        raise frames.Garbled("no connection was handed over")
    for fd in fds:
        os.set_inheritable(fd, False)
    return int.from_bytes(start[:8], "big"), start[8:].rstrip(b"\0"), _socket.socket(fileno=fds[0]), fds[1]


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


def _readable(connection: _socket.socket, seconds: float) -> bool:
    return bool(select.select([connection.fileno()], [], [], seconds)[0])


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


def _to_nowhere() -> None:
    """Our streams have seen that they are not files; from now on nothing is read from them or written to them."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def rehearsable(asked: bytes) -> list[str]:
    """The words of a command, if running it once more changes nothing; else nothing."""
    words = os.fsdecode(asked.rstrip(b"\0")).split("\0")
    return words if words[0] == "guard" and words[1:2] and words[1] in PURE_GUARDS and "--lines" not in words else []


def rehearse(run: event.Run, *commands: list[str]) -> None:
    """Answer events of our own, sent as a client sends them: the first real one finds everything in place.

    How they end does not matter. Afterwards environment and streams are as they were.
    """
    environ, streams = dict(os.environb), (sys.stdin, sys.stdout, sys.stderr)
    pretended = environ | {b"HOOKLINE_REHEARSAL_%d" % number: b"." * 60 for number in range(PADDING)}
    for words in commands:
        fds = [client.buffer("rehearsal") for _ in range(3)]
        client.write_all(fds[0], EVENT)
        os.lseek(fds[0], 0, os.SEEK_SET)
        ours, theirs = _socket.socketpair()
        client.send_body(theirs, words, [*map(b"=".join, pretended.items())], fds)
        kept = event.become(event.receive(ours))
        with (
            open(0, closefd=False) as sys.stdin,
            open(1, "w", closefd=False) as sys.stdout,
            open(2, "w", closefd=False) as sys.stderr,
            contextlib.suppress(SystemExit, Exception),
        ):
            run(words)
        ours.close()
        theirs.close()
        for fd in (*fds, *kept):
            os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = streams
    event.wear(environ)
    tempfile.tempdir = None  # each environment has its own
    _to_nowhere()


def main(fd: int) -> None:
    """Get warm, say so, and serve."""
    began = time.time()
    gc.disable()
    _to_nowhere()
    for name in PRELOAD:
        with contextlib.suppress(ImportError):  # an extra that is not there; who needs it will say so
            importlib.import_module(name)
    run = importlib.import_module(TARGET).main
    os.environ["XDG_STATE_HOME"] = os.devnull  # a rehearsal is nobody's event: no fleet judges or records it
    rehearse(run, *REHEARSALS)
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
