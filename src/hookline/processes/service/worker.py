"""A worker: a process that has imported what hooks need, and forks the processes that events run in.

It runs nothing of an event itself, has one thread, and ends with the connection to the service once its last event is
through. An event whose client has left is ended, with its processes.
"""

import _socket
import contextlib
import fcntl
import gc
import importlib
import os
import signal
import sys
import tempfile
import threading
import time
from typing import NoReturn

from hookline.core import template
from hookline.core.files import in_fleet
from hookline.processes.service import client, event_process, frames

QUIET = 0.05
"""Seconds after an event began in which no process is forked ahead, as the agent wants the machine for itself."""
KILL_GRACE_SECONDS = 2.0  # seconds between asking the processes of an abandoned event to end and ending them


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
        self.slots: int = client.nameless_file()

    def taken(self, data: bytes, fds: list[int]) -> WorkerEvent:
        self.poll.register(fds[0], 0)
        return WorkerEvent(data, fds)

    def heard(self, kind: bytes, pid: int, data: bytes, fds: list[int]) -> None:
        super().heard(kind, pid, data, fds)
        if kind in (THROUGH, AGAIN) and pid in self.running:
            self.running[pid].through, self.running[pid].kill_at = True, None
            if kind == AGAIN:
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


def main(entry: str, fd: int) -> None:
    """Get warm, say so, and serve: `entry` is a module with a `main`, and with the names of what to import ahead."""
    gc.disable()
    template.discard(0, 1, 2)  # our streams have seen that they are not files
    resident = importlib.import_module(entry)
    for name in resident.PRELOAD:
        with contextlib.suppress(ImportError):  # an extra that is not there; a command that needs it will say so
            importlib.import_module(name)
    os.environ["XDG_STATE_HOME"] = os.devnull  # a rehearsal is not an event: no fleet judges or records it
    rehearse(resident.main, *REHEARSALS)
    gc.collect()
    gc.freeze()
    worker = Worker(_socket.socket(fileno=fd))
    loaded = template.files_of(list(sys.modules.values()))
    worker.announce(list(dict.fromkeys([sys.executable, os.__file__, *loaded])))  # what makes this process what it is
    worker.serve()
    try:
        Spare(worker, worker.slots, resident.main).serve()
    finally:
        os._exit(70)


# -- the process that waits for an event, gets ready for it meanwhile, and becomes it ----------------------------------


EVENT = b"""{"hook_event_name": "PreToolUse", "session_id": "rehearsal", "transcript_path": "", "cwd": "/",
"tool_name": "Bash", "tool_input": {"command": "cd / && git -C x status -s | grep 'y' > /dev/null"}}"""
REHEARSALS = (
    ["guard", "commands", "--block", "rm -rf *", "--only", "git *", "--containing", "secret"],
    ["guard", "paths", "--confine", "auto", "--temporary", "--protect", "--block", "sudo *"],
    ["guard", "protect"],
)
"""Commands that are run before the first event: what they import, compile and keep is there, and in place."""
PURE_GUARDS = ("approvals", "commands", "paths", "protect", "secrets")
"""Guards that change nothing in the process that runs them."""
PADDING = 40  # variables that a client's environment has beyond a worker's, more or less
SETTLE = 0.02  # seconds without an event after which the next command is rehearsed
MAX_IDLE = 2  # processes of one worker that wait for events at once
MOST_EVENTS, LARGEST_EVENT = 1000, 1 << 20
"""Events after which a process ends, and bytes of one event: what it has gathered goes with it."""
READ_LIMIT = 5.0  # seconds that a client may take to send its body
THROUGH, AGAIN = b"e", b"w"  # what a process tells its worker: the event is through · and it waits for another one


class Spare:
    """A fork of a worker: waits for an event, answers it, and waits again if it can."""

    def __init__(self, worker: template.Template, slots: int, run: event_process.Run) -> None:
        self.worker: template.Template = worker
        self.slots: int = slots
        self.run: event_process.Run = run
        self.slot: int = -1
        self.answered: int = 0

    def serve(self) -> NoReturn:
        """Answer events until one leaves something behind."""
        for number in (signal.SIGTERM, signal.SIGHUP):  # as in a newly started Python
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self._acquire_idle_slot():
            os._exit(0)  # others have come back meanwhile
        self._get_ready()
        while True:
            message, fds = self.worker.next_request(8, 1)
            fcntl.lockf(self.slots, fcntl.LOCK_UN, 1, self.slot)  # it does not wait any more
            if not self.answered:
                os.setpgid(0, 0)
            self.worker.note(template.TAKEN, message, fds[0])
            self.answer(_socket.socket(fileno=fds[0]))
            self.answered += 1
            _forget()

    def _get_ready(self) -> None:
        for words in REHEARSALS:
            if template.is_waiting(self.worker.requests, SETTLE):
                break
            rehearse(self.run, words)  # writes to its memory now, so that the event finds it copied already
        gc.freeze()  # what rehearsals have left is not looked through while a client waits
        gc.enable()

    def _acquire_idle_slot(self) -> bool:
        """Take one of the slots for processes that wait; a process that ends leaves its slot."""
        for slot in range(MAX_IDLE):
            with contextlib.suppress(OSError):
                fcntl.lockf(self.slots, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
                self.slot = slot
                return True
        return False

    def answer(self, connection: _socket.socket) -> None:
        """Serve one client. The process ends, unless nothing was left in it that the next event could meet."""
        stays = False
        try:
            try:
                connection.settimeout(READ_LIMIT)
                words, out, err = event_process.become(*event_process.receive(connection))
            except (OSError, ValueError, frames.FrameError) as problem:
                connection.sendall(frames.frame(frames.DECLINED, str(problem).encode()))
                os._exit(0)
            connection.settimeout(None)
            connection.sendall(frames.frame(frames.STARTED, os.getpid().to_bytes(4, "big")))
            code, unchanged = self._perform(words, err)
            sizes = [os.fstat(fd).st_size.to_bytes(8, "big") for fd in (out, err)]
            stays = self._end(stays=unchanged) and not has_left(connection)
            connection.sendall(frames.frame(frames.ENDED, code.to_bytes(4, "big", signed=True) + b"".join(sizes)))
            connection.close()
            os.close(out)
            os.close(err)
        finally:
            if not stays:
                os._exit(0)

    def _perform(self, words: list[str], err: int) -> tuple[int, bool]:
        """The exit code of a command; whether nothing is left of it. If something is, it has ended as Python ends."""
        pure, modules, large = is_pure(words) and not in_fleet(), len(sys.modules), os.fstat(0).st_size > LARGEST_EVENT
        if not pure:  # may do anything: it does not get hold of the service, and is the last one here
            self.worker.requests.close()
        code = event_process.perform(self.run, words)
        sys.stderr.flush()
        unchanged = code == 0 and not os.fstat(err).st_size and len(sys.modules) == modules
        unchanged = unchanged and threading.active_count() == 1 and not _has_children()
        if pure and unchanged and not large:
            return code, True
        return event_process.finish(code), False

    def _end(self, *, stays: bool) -> bool:
        """Tell the worker that the event is through; whether this process waits for another one."""
        stays = stays and self.answered < MOST_EVENTS and self._acquire_idle_slot()
        with contextlib.suppress(OSError):  # a worker that was killed; the client must hear, or it would judge again
            self.worker.note(AGAIN if stays else THROUGH)
            return stays
        return False


def has_left(connection: _socket.socket) -> bool:
    """Whether the client has gone; then the worker may be about to end this process."""
    with contextlib.suppress(BlockingIOError):
        return not connection.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
    return False


def _has_children() -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        return True
    return False


def _forget() -> None:
    """Hold on to nothing of an event: no folder, no streams, nothing that Python remembers of its environment."""
    os.chdir("/")
    tempfile.tempdir = None
    template.discard(0, 1, 2)


def is_pure(words: list[str]) -> bool:
    """Whether a command is a guard of ours that answers once and leaves its process as it was."""
    return words[:1] == ["guard"] and words[1:2] != [] and words[1] in PURE_GUARDS and "--lines" not in words


def rehearse(run: event_process.Run, *commands: list[str]) -> None:
    """Answer events of our own, sent as a client sends them: the first real one finds everything in place.

    How they end does not matter. Afterwards environment and streams are as they were.
    """
    environ, streams = dict(os.environb), (sys.stdin, sys.stdout, sys.stderr)
    pretended = environ | {b"HOOKLINE_REHEARSAL_%d" % number: b"." * 60 for number in range(PADDING)}
    for words in commands:
        fds = [client.nameless_file(data) for data in (EVENT, b"", b"")]
        os.lseek(fds[0], 0, os.SEEK_SET)
        ours, theirs = _socket.socketpair()
        client.send_body(theirs, words, [*map(b"=".join, pretended.items())], fds)
        _, *kept = event_process.become(*event_process.receive(ours))
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
    template.replace_environ([*map(b"=".join, environ.items())])
    tempfile.tempdir = None  # each environment has its own
    template.discard(0, 1, 2)
