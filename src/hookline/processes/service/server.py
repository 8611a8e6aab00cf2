"""The service: takes connections, checks who is there, and hands each to the worker that can answer it.

It reads no event and runs no hook. Once a connection is handed over, worker and client are on their own: what becomes
of the service no longer matters to them. It needs the standard library only, and nothing of any environment.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from importlib import import_module
from typing import Any

from hookline.processes.fork_server import Stamps
from hookline.processes.service import address, frames, keepers
from hookline.processes.service.pool import END_LIMIT, Log, Pool, Route

IDLE = 15 * 60.0  # seconds without an event after which the service ends
REQUEST_LIMIT = 5.0  # seconds that a client may take to say what it wants
BACKLOG = 1024
DROPPED = (OSError, TimeoutError, frames.FrameError, ValueError, IndexError)
"""What a client that leaves or talks nonsense leads to."""


class Service:
    """One user's service; `run` returns when it has been stopped, replaced, or left alone for long."""

    def __init__(self, name: str, log: Log, entry: str, state: str, home: str) -> None:
        self.name: str = name
        self.log: Log = log
        self.path: str = f"{name}.sock"
        self.pool: Pool = Pool(entry, log)
        folders = [each for each in dict.fromkeys((keepers.usual_state(), state)) if os.path.isabs(each)]
        self.leaves: dict[str, keepers.WantedProcess] = {each: keepers.keep_leaf(each, log) for each in folders}
        self.sinks: list[keepers.WantedProcess] = [keepers.keep_sink(folder, log) for folder in folders]
        self.inbox: keepers.InboxKeeper = keepers.InboxKeeper(name, home, state, log)
        self.crew: keepers.WantedProcess = keepers.keep_crew(name, state, log)
        self.began: float = time.time()
        self.used: float = time.monotonic()
        self.declined: int = 0
        self.talking: set[asyncio.Task[None]] = set()
        self.stopping: asyncio.Event = asyncio.Event()
        self.waiting: list[socket.socket] = []
        self.confinement: list[object] = address.confinement("self")
        files = [getattr(module, "__file__", None) or "" for module in tuple(sys.modules.values())]
        self.own: Stamps = Stamps([file for file in files if "hookline" in file], self.began)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.stopping.set)
        listener = self._listen()
        keeping: list[asyncio.Task[None]] = []
        try:
            self.log(f"started, pid {os.getpid()}, protocol {frames.PROTOCOL}, {sys.executable}")
            loop.add_reader(listener, self._accept, listener)
            kept = (*self.leaves.values(), *self.sinks, self.crew)
            keeping = [loop.create_task(run()) for run in (*(one.run for one in kept), self.inbox.run)]
            await self._until_done()
        finally:
            for task in keeping:
                task.cancel()
            loop.remove_reader(listener)
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            listener.close()
            await asyncio.gather(*keeping, return_exceptions=True)
            await self.pool.aclose(END_LIMIT)
            for talk in self.talking:
                talk.cancel()
            await asyncio.gather(*self.talking, return_exceptions=True)
            self.log("ended")

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0))
        listener.setblocking(False)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # we hold the lock, so the service that made it has gone
        listener.bind(self.path)
        listener.listen(BACKLOG)
        return listener

    async def _until_done(self) -> None:
        while not self.stopping.is_set():
            left = IDLE - (time.monotonic() - self.used)
            busy = self.pool.busy or self.inbox.running
            if left <= 0 and not busy and not any(one.wanted() for one in (*self.leaves.values(), *self.sinks)):
                self.log(f"no event in {IDLE / 60:.0f} minutes")
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), max(1.0, min(left, 30.0)))

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as problem:  # no descriptors left: the client answers by itself
                self.log(f"cannot accept: {problem}")
                return
            connection.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._talk(connection))
            self.talking.add(task)
            task.add_done_callback(self.talking.discard)

    async def _talk(self, connection: socket.socket) -> None:
        with connection:
            try:
                async with asyncio.timeout(REQUEST_LIMIT):
                    await self._answer(connection)
            except DROPPED as problem:
                self.log(f"a client was dropped: {str(problem) or type(problem).__name__}")

    async def _answer(self, connection: socket.socket) -> None:
        """Compare files while the client reads its event: ours, and those of the worker that it most likely wants.

        The client has been started by now, so what changes later is as late as it would be for a process of its own.
        """
        if not address.is_trusted(connection, self.confinement):
            self._decline(connection, "another user, or a process that is confined differently")
            return
        own, fresh = self.own.fresh(), self.pool.look_ahead()
        protocol, kind, length = frames.read_head(await _exactly(connection, frames.HEAD))
        if protocol != frames.PROTOCOL:
            self._decline(connection, f"this service speaks protocol {frames.PROTOCOL}")
            self._give_way(newer=protocol > frames.PROTOCOL)
            return
        route = await _exactly(connection, length)
        if kind == frames.CONTROL:
            await self._control(connection, route)
            return
        self.used = time.monotonic()
        changed = "" if own else "Hookline has changed; a new service follows"
        if reason := changed or self.pool.hand_over(Route(route), connection, fresh):
            self._decline(connection, reason)
        self._give_way(newer=not own)

    def _give_way(self, *, newer: bool) -> None:
        if newer:
            self.log("a newer Hookline is there; making room for its service")
            self.stopping.set()

    def _decline(self, connection: socket.socket, reason: str) -> None:
        self.declined += 1
        self.log(f"declined: {reason}")
        with contextlib.suppress(OSError):  # it has gone; what it could not be told is short and has room
            connection.send(frames.frame(frames.DECLINED, reason.encode()))

    async def _control(self, connection: socket.socket, request: bytes) -> None:
        answer: dict[str, Any] = {"error": f"no such request: {request.decode(errors='replace')}"}
        if request == b"status":
            answer = self.status()
        elif request == b"stop":
            answer = {"stopping": True}
            self.waiting.append(connection.dup())  # the client that asked sees it close when this process has ended
            self.stopping.set()
        data = json.dumps(answer).encode()
        await asyncio.get_running_loop().sock_sendall(connection, frames.frame(frames.RESULT, data))

    def status(self) -> dict[str, Any]:
        """What runs, since when, how much it has done."""
        return {
            "name": self.name,
            "pid": os.getpid(),
            "since": self.began,
            "idle_limit": IDLE,
            "declined": self.declined,
            "python": sys.executable,
            "socket": os.path.abspath(self.path),
            "inbox": self.inbox.status(),
            "fleet": [{"state": state, **leaf.status()} for state, leaf in self.leaves.items() if leaf.wanted()],
            **self.pool.status(),
        }


async def _exactly(connection: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < size:
        more = await loop.sock_recv(connection, size - len(data))
        if not more:
            raise frames.FrameError("it left before it had said what it wants")
        data += more
    return data


def main(name: str, lock: int, entry: str, state: str = "", home: str = "") -> None:
    """Run the service that holds the lock; its file goes when the service does. Workers import the module `entry`."""
    os.set_inheritable(lock, False)
    for number in (signal.SIGINT, signal.SIGQUIT):  # a shell has them ignored by what it leaves in the background
        signal.signal(number, signal.SIG_DFL)
    import_module("hookline.__main__")  # compiled once, also for clients that are told to write no bytecode
    import_module("hookline.processes.service.client")
    _enter(address.folder())
    log = Log(f"{name}.log")
    try:
        asyncio.run(Service(name, log, entry, state, home).run())
    except Exception as problem:
        log(f"failed: {type(problem).__name__}: {problem}")
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(f"{name}.lock")


def _enter(folder: str) -> None:
    """Stay in the folder itself: a process that may write beside it (`/tmp`) can replace it by a link."""
    os.chdir(folder)
    if not (address.is_private(folder) and os.path.samestat(os.lstat(folder), os.stat("."))):
        raise PermissionError(f"{folder}: not a private folder of this user")
