"""The workers of a service: one for each interpreter and hook set, replaced when they end or no longer match."""

import contextlib
import itertools
import os
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from hookline.core.interpreter import python_argv
from hookline.processes.fork_server import ForkServer, ServerPool, read_at_startup
from hookline.processes.service import frames

LIMIT = 12  # workers kept at once; the one used longest ago makes room
IDLE = 10 * 60.0  # seconds without an event after which a worker is let go
MOST_RUNNING = 256  # events under way at once in one worker; further clients answer by themselves
RETRY = 10.0  # seconds before a worker that could not start is tried again
END_LIMIT = 5.0  # seconds that workers have to finish their events when the service ends
BOOT = "from hookline.processes.service.worker import main; main(sys.argv[1], int(sys.argv[2]))"
COERCED = (b"LC_CTYPE=C.UTF-8", b"LC_CTYPE=C.utf8", b"LC_CTYPE=UTF-8")
REMEMBERED = 1000  # durations kept for each hook set
LARGEST_LOG = 512 * 1024  # bytes after which the log begins again; the half before is kept beside it


class Log:
    """A bounded file beside the socket: lines with their time; one that cannot be written stops nothing."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, line: str) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError):
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with open(fd, "wb", 0) as file:
                file.write(f"{stamp} {line}\n".encode(errors="backslashreplace"))
                if os.fstat(fd).st_size > LARGEST_LOG:
                    os.replace(self.path, f"{self.path}.1")


class Route:
    """Who is to answer an event: which interpreter, with which package, started up how; and a name for the hook set."""

    def __init__(self, data: bytes) -> None:
        fields = data.split(b"\0")
        self.executable, self.home, self.flags, options, self.cwd = map(os.fsdecode, fields[:5])
        self.options: tuple[str, ...] = tuple(options.split())
        self.words, at = frames.take(fields, 5)
        startup = sorted(entry for entry in fields[at:] if read_at_startup(os.fsdecode(entry.partition(b"=")[0])))
        if "utf8" in self.options:  # Python itself may have put it there, because there was no locale (PEP 538)
            startup = [entry for entry in startup if entry not in COERCED]
        self.startup: tuple[bytes, ...] = tuple(startup)
        self.key: tuple[object, ...] = (self.executable, self.home, self.flags, self.startup)

    @property
    def hook_set(self) -> str:
        """What people would call it: a hook file, a project's settings, a guard and its arguments."""
        words = iter(self.words[1:])
        for word in words:
            name, equals, value = word.partition("=")
            if len(name) > 4 and "--hooks".startswith(name):
                return os.path.join(self.cwd, value if equals else next(words, ""))
        if self.words[:1] == ["guard"]:
            return " ".join(self.words[:6])
        return f"settings of {self.cwd}"


@dataclass
class Tally:
    """How many events a hook set has had, and how long they took."""

    events: int = 0
    failed: int = 0
    durations: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def add(self, milliseconds: float, code: int) -> None:
        self.events += 1
        self.failed += code != 0
        self.durations.append(milliseconds)

    def as_json(self) -> dict[str, Any]:
        ordered = sorted(self.durations)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] if ordered else None
        return {"events": self.events, "died": self.failed, "p50": median(ordered) if ordered else None, "p95": p95}


class WorkerHandle(ForkServer):
    """The service's end of one worker."""

    def __init__(self, route: Route, pool: "Pool") -> None:
        self.route: Route = route
        self.pool = pool
        self.running: dict[int, str] = {}
        env = {os.fsdecode(name): os.fsdecode(value) for name, _, value in (e.partition(b"=") for e in route.startup)}
        argv = python_argv(BOOT, pool.entry, options=route.options, python=route.executable, home=route.home)
        super().__init__(argv, env)

    def hand(self, number: int, connection: socket.socket, route: Route) -> bool:
        if self.retired or len(self.running) >= MOST_RUNNING:
            return False
        try:
            # Said first: once the connection is handed over, the worker's frames may come at any moment.
            connection.send(frames.frame(frames.ACCEPTED, self.process.pid.to_bytes(4, "big")))
            self.send(number.to_bytes(8, "big"), (connection.fileno(),))
        except OSError:
            return False
        self.running[number] = route.hook_set
        return True

    def handle(self, word: bytes, rest: bytes) -> None:
        """`ready`, or `done NUMBER MICROSECONDS CODE`."""
        super().handle(word, rest)
        if word == b"ready":
            self.pool.log(f"worker {self.process.pid} is ready: {self.route.executable}")
        elif word == b"done":
            number, took, code = map(int, rest.split())
            self.pool.count(self.running.pop(number, None), took / 1000, code)

    def as_json(self) -> dict[str, Any]:
        return {
            "pid": self.process.pid,
            "since": self.began,
            "python": self.route.executable,
            "ready": self.ready,
            "running": len(self.running),
            "memory": memory_of(self.process.pid),
        }


class Pool(ServerPool[tuple[object, ...], WorkerHandle]):
    """Every worker, by what it is for; all of them import the module `entry`."""

    def __init__(self, entry: str, log: Log) -> None:
        super().__init__(limit=LIMIT, idle=IDLE, retry=RETRY)
        self.entry: str = entry
        self.log: Log = log
        self.tallies: dict[str, Tally] = {}
        self.numbers: itertools.count[int] = itertools.count()

    @property
    def busy(self) -> bool:
        return any(hand.running for hand in (*self.servers.values(), *self.leaving))

    def look_ahead(self) -> WorkerHandle | None:
        """The worker that was asked last, if its files are as they were; most events are for it."""
        last = max(self.servers.values(), key=lambda hand: hand.used, default=None)
        return last if last is not None and last.fresh else None

    def hand_over(self, route: Route, connection: socket.socket, fresh: WorkerHandle | None) -> str:
        """Give a worker the event; why that cannot be, or nothing. The files of `fresh` have just been looked at."""
        hand = self.servers.get(route.key)
        if hand is None:
            return self._start(route)
        if not hand.ready:
            return "its worker is starting"
        if hand is not fresh and not hand.fresh:
            self.log(f"worker {hand.process.pid} is out of date")
            self.let_go(route.key)
            self._start(route)
            return "something changed since its worker was started"
        return "" if hand.hand(next(self.numbers), connection, route) else "its worker is overloaded"

    def _start(self, route: Route) -> str:
        if self.has_failed(route.key):
            return "its worker could not be started"
        try:
            self.keep(route.key, WorkerHandle(route, self))
        except OSError as problem:
            self.note_failure(route.key)
            return f"its worker could not be started: {problem}"
        return "its worker is starting"

    def count(self, hook_set: str | None, milliseconds: float, code: int) -> None:
        if hook_set is not None:
            self.tallies.setdefault(hook_set, Tally()).add(milliseconds, code)
        if code:
            self.log(f"the process of an event of {hook_set} ended with {code} before it had answered")

    def unexpected(self, server: WorkerHandle) -> None:
        self.log(f"worker {server.process.pid} ended with {server.ended.result()}; it will be replaced")

    def status(self) -> dict[str, Any]:
        return {
            "events": sum(tally.events for tally in self.tallies.values()),
            "hook_sets": {name: tally.as_json() for name, tally in self.tallies.items()},
            "workers": [hand.as_json() for hand in self.servers.values()],
            "memory": memory_of(os.getpid()),
        }


def memory_of(pid: int) -> int | None:
    """The bytes that are a process's own; None where the system does not tell."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
        return next((int(line.split()[1]) * 1024 for line in rollup if line.startswith(b"Pss:")), None)
    return None
