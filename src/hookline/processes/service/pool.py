"""The workers of a service: one for each interpreter and hook set, replaced when they end or no longer match."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Generator
from statistics import median
from typing import Any

from hookline.core.interpreter import python_argv
from hookline.processes.service import frames
from hookline.processes.service.log import Log
from hookline.processes.stamps import Stamps
from hookline.processes.startup import read_at_startup

LIMIT = 12
"""Workers kept at once; the one used longest ago makes room."""
IDLE = 10 * 60.0
"""Seconds without an event after which a worker is let go."""
MOST_RUNNING = 256
"""Events under way at once in one worker; further clients answer by themselves."""
RETRY = 10.0
"""Seconds before a worker that could not start is tried again."""
END_LIMIT = 5.0
"""Seconds that workers have to finish their events when the service ends."""
BOOT = "from hookline.processes.service.worker import main; main(int(sys.argv[1]))"
COERCED = (b"LC_CTYPE=C.UTF-8", b"LC_CTYPE=C.utf8", b"LC_CTYPE=UTF-8")
REMEMBERED = 1000
"""Durations kept for each hook set."""


class Route:
    """Who is to answer an event: which interpreter, with which package, started up how; and a name for the hook set."""

    cwd: str
    executable: str
    flags: str
    home: str
    options: tuple[str, ...]
    words: list[str]

    def __init__(self, data: bytes) -> None:
        fields = data.split(b"\0")
        self.executable, self.home, self.flags, options, self.cwd = map(os.fsdecode, fields[:5])
        self.options = tuple(options.split())
        self.words, at = frames.take(fields, 5)
        startup = sorted(entry for entry in fields[at:] if read_at_startup(os.fsdecode(entry.partition(b"=")[0])))
        if "utf8" in self.options:  # Python itself may have put it there, because there was no locale (PEP 538)
            startup = [entry for entry in startup if entry not in COERCED]
        self.startup: tuple[bytes, ...] = tuple(startup)

    @property
    def key(self) -> tuple[object, ...]:
        return self.executable, self.home, self.flags, self.startup

    @property
    def asked(self) -> bytes:
        """The words, always as many bytes; none if they are too many."""
        words = frames.join(*map(os.fsencode, self.words))
        return (words if len(words) < frames.ASKED else b"").ljust(frames.ASKED, b"\0")

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


class Tally:
    """How many events a hook set has had, and how long they took."""

    events: int
    failed: int

    def __init__(self) -> None:
        self.events = self.failed = 0
        self.durations: deque[float] = deque(maxlen=REMEMBERED)

    def add(self, milliseconds: float, code: int) -> None:
        self.events += 1
        self.failed += code != 0
        self.durations.append(milliseconds)

    def as_json(self) -> dict[str, Any]:
        ordered = sorted(self.durations)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] if ordered else None
        return {"events": self.events, "died": self.failed, "p50": median(ordered) if ordered else None, "p95": p95}


class WorkerHandle:
    """The service's end of one worker."""

    log: Log
    route: Route
    retired: bool

    def __init__(self, route: Route, log: Log) -> None:
        ours, theirs = socket.socketpair()
        self.route, self.log = route, log
        self.began: float = time.time()
        self.used: float = time.monotonic()
        self.ready = self.retired = False
        self.stamps: Stamps = Stamps({}, {})
        self.running: dict[int, str] = {}
        self.heard = b""
        self.sock = ours
        ours.setblocking(False)
        inlet, outlet = os.pipe()  # its streams are not files, as an agent's are not
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                python_argv(
                    BOOT, str(theirs.fileno()), options=route.options, python=route.executable, home=route.home
                ),
                cwd="/",
                env={os.fsdecode(name): os.fsdecode(value) for name, _, value in map(_split, route.startup)},
                stdin=inlet,
                stdout=outlet,
                stderr=outlet,
                pass_fds=(theirs.fileno(),),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(inlet)
            os.close(outlet)

    def hand(self, number: int, connection: socket.socket, route: Route) -> DispatchedEvent | None:
        """Give it a connection; None if it cannot take one now."""
        if self.retired or len(self.running) >= MOST_RUNNING:
            return None
        inlet, outlet = os.pipe()
        try:
            # Said first: once the connection is handed over, the worker's frames may come at any moment.
            connection.send(frames.frame(frames.ACCEPTED, self.process.pid.to_bytes(4, "big")))
            self.sock.sendmsg([number.to_bytes(8, "big"), route.asked], frames.rights([connection.fileno(), inlet]))
        except OSError:
            os.close(outlet)
            return None
        finally:
            os.close(inlet)
        self.running[number] = route.hook_set
        self.used = time.monotonic()
        return DispatchedEvent(self, number, outlet)

    def retire(self) -> None:
        """Give it no more work: it ends when its last event has."""
        if not self.retired:
            self.retired = True
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_WR)

    def as_json(self) -> dict[str, Any]:
        return {
            "pid": self.process.pid,
            "since": self.began,
            "python": self.route.executable,
            "ready": self.ready,
            "running": len(self.running),
            "memory": memory_of(self.process.pid),
        }


class DispatchedEvent:
    """An event that a worker has been given; it becomes what the client is, and begins when it is told to."""

    hand: WorkerHandle
    number: int
    outlet: int

    def __init__(self, hand: WorkerHandle, number: int, outlet: int) -> None:
        self.hand, self.number, self.outlet = hand, number, outlet

    def begin(self) -> None:
        with contextlib.suppress(OSError):  # its process has gone
            os.write(self.outlet, frames.GO)
        os.close(self.outlet)

    def withdraw(self) -> None:
        self.hand.running.pop(self.number, None)
        os.close(self.outlet)


class Pool:
    """Every worker, by what it is for."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.workers: dict[tuple[object, ...], WorkerHandle] = {}
        self.leaving: set[WorkerHandle] = set()
        self.failed: dict[tuple[object, ...], float] = {}
        self.tallies: dict[str, Tally] = {}
        self.numbers: itertools.count[int] = itertools.count()
        self.changed: asyncio.Event = asyncio.Event()

    @property
    def busy(self) -> bool:
        return any(hand.running for hand in (*self.workers.values(), *self.leaving))

    def look_ahead(self) -> Generator[None, None, WorkerHandle | None]:
        """The worker that was asked last, if its files are as they were; most events are for it."""
        ready = [hand for hand in self.workers.values() if hand.ready]
        last = max(ready, key=lambda hand: hand.used, default=None)
        return last if last is not None and (yield from last.stamps.inspect()) else None

    def hand_over(self, route: Route, connection: socket.socket) -> DispatchedEvent | None:
        """Give a worker the event, if there is one that can take it."""
        hand = self.workers.get(route.key)
        return hand.hand(next(self.numbers), connection, route) if hand is not None and hand.ready else None

    def why_not(self, route: Route, handover: DispatchedEvent | None, fresh: WorkerHandle | None) -> str:
        """Why an event cannot be answered by a worker; nothing if it can. `fresh` has just been looked at."""
        hand = self.workers.get(route.key)
        if hand is None:
            return self._start(route)
        if not hand.ready:
            return "its worker is starting"
        if hand is not fresh and not hand.stamps.fresh():
            self.log(f"worker {hand.process.pid} is out of date")
            self._let_go(hand)
            self._start(route)
            return "something changed since its worker was started"
        return "" if handover else "its worker is overloaded"

    def _start(self, route: Route) -> str:
        if time.monotonic() - self.failed.get(route.key, -RETRY) < RETRY:
            return "its worker could not be started"
        try:
            hand = WorkerHandle(route, self.log)
        except OSError as problem:
            self.failed[route.key] = time.monotonic()
            return f"its worker could not be started: {problem}"
        self.workers[route.key] = hand
        asyncio.get_running_loop().add_reader(hand.sock, self._hear, hand)
        self._make_room()
        return "its worker is starting"

    def _make_room(self) -> None:
        while len(self.workers) > LIMIT:
            self._let_go(min(self.workers.values(), key=lambda hand: hand.used))

    def let_idle_go(self) -> None:
        """Let go of workers that nobody has asked for a while."""
        for hand in tuple(self.workers.values()):
            if not hand.running and time.monotonic() - hand.used > IDLE:
                self._let_go(hand)

    def _let_go(self, hand: WorkerHandle) -> None:
        if self.workers.get(hand.route.key) is hand:
            del self.workers[hand.route.key]
        self.leaving.add(hand)
        hand.retire()

    # ---- what workers say

    def _hear(self, hand: WorkerHandle) -> None:
        try:
            data = hand.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone(hand)
            return
        *lines, hand.heard = (hand.heard + data).split(b"\n")
        for line in lines:
            self._handle_message(hand, line.decode())

    def _handle_message(self, hand: WorkerHandle, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "ready":
            hand.ready, hand.stamps = True, Stamps.from_json(rest)
            self.log(f"worker {hand.process.pid} is ready: {hand.route.executable}")
        elif word == "done":
            number, took, code = map(int, rest.split())
            hook_set = hand.running.pop(number, None)
            if hook_set is not None:
                self.tallies.setdefault(hook_set, Tally()).add(took / 1000, code)
            if code:
                self.log(f"the process of an event of {hook_set} ended with {code} before it had answered")

    def reap(self) -> None:
        """See who has ended, be its connection still held open by a process that it forked; that one ends, too."""
        for hand in (*self.workers.values(), *self.leaving):
            if hand.process.poll() is not None:
                self._hear(hand)  # what it said last
                if hand.sock.fileno() >= 0:
                    self._gone(hand)

    def _gone(self, hand: WorkerHandle) -> None:
        asyncio.get_running_loop().remove_reader(hand.sock)
        hand.sock.close()
        with contextlib.suppress(OSError):
            if not hand.retired:
                hand.process.kill()
        code = hand.process.wait()
        if not hand.ready:
            self.failed[hand.route.key] = time.monotonic()
        if not hand.retired:
            self.log(f"worker {hand.process.pid} ended with {code}; it will be replaced")
        self._let_go(hand)
        self.leaving.discard(hand)
        self.changed.set()

    # ---- the end

    async def aclose(self) -> None:
        """Let every worker finish what it does; who does not within a while is ended."""
        for hand in tuple(self.workers.values()):
            self._let_go(hand)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_LIMIT):
                while self.leaving:
                    self.changed.clear()
                    await self.changed.wait()
        for hand in tuple(self.leaving):
            hand.process.send_signal(signal.SIGKILL)
            self._gone(hand)

    def status(self) -> dict[str, Any]:
        return {
            "events": sum(tally.events for tally in self.tallies.values()),
            "hook_sets": {name: tally.as_json() for name, tally in self.tallies.items()},
            "workers": [hand.as_json() for hand in self.workers.values()],
            "memory": memory_of(os.getpid()),
        }


def _split(entry: bytes) -> tuple[bytes, bytes, bytes]:
    return entry.partition(b"=")


def memory_of(pid: int) -> int | None:
    """The bytes that are a process's own; None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
            for line in rollup:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
