"""The owner's end of processes that fork (`template`): started, asked, compared with their files, and let go.

Nothing but the standard library: the service uses it.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar
from hookline.core import template
from hookline.processes.loop import watch
import hashlib
from collections.abc import Iterable

STARTUP_NAMES = frozenset({"HOME", "LANG", "LANGUAGE", "TZ", "VIRTUAL_ENV", "GLIBC_TUNABLES", "__PYVENV_LAUNCHER__"})
STARTUP_PREFIXES = ("PYTHON", "LC_", "LD_", "DYLD_", "MALLOC_", "COVERAGE_", "SETUPTOOLS_", "CONDA_")
"""Variables that an interpreter, or what its `site` folder loads, reads while starting up."""


def read_at_startup(name: str) -> bool:
    """Whether two interpreters that differ in this variable may start up differently."""
    return name in STARTUP_NAMES or name.startswith(STARTUP_PREFIXES)


class ForkServer:
    """One process that forks on request; `ready` once it has said what files it was made from."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], executable: str | None = None) -> None:
        """Start it; the number of its end of the conversation is its last argument."""
        ours, theirs = socket.socketpair()
        inlet, outlet = os.pipe()  # its streams are not files, as its forks' will not be
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.began: float = time.time()
        self.used: float = time.monotonic()
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [*argv, str(theirs.fileno())], executable=executable, cwd="/", env=env, stdin=inlet, stdout=outlet,
                stderr=outlet, pass_fds=(theirs.fileno(),), process_group=0,
            )  # fmt: skip
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(inlet)
            os.close(outlet)
        ours.setblocking(False)
        self.sock = ours
        self.stamps: Stamps | None = None
        self.retired: bool = False
        self.answered: asyncio.Future[bool] = self.loop.create_future()
        self._heard = b""
        self.ended: asyncio.Future[int | None] = watch(self.process, self.loop)
        self.loop.add_reader(ours, self._hear)
        self.ended.add_done_callback(lambda _: self.close())  # its spare may outlive it and hold the connection

    @property
    def ready(self) -> bool:
        return self.stamps is not None

    @property
    def fresh(self) -> bool:
        return self.stamps is not None and self.stamps.fresh()

    def send(self, data: bytes, fds: Sequence[int]) -> None:
        """Make a request; an `OSError` if it cannot be made now."""
        template.send(self.sock, data, tuple(fds))
        self.used = time.monotonic()

    def _hear(self) -> None:
        try:
            data = self.sock.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self.close()

    def _take(self, data: bytes) -> None:
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            word, _, rest = line.partition(b" ")
            self.handle(word, rest)

    def handle(self, word: bytes, rest: bytes) -> None:
        if word == b"ready":
            self.stamps = Stamps(map(os.fsdecode, rest.split(b"\0")), self.began)
            self._settle()

    def retire(self) -> None:
        """Give it no more work: it ends when its last run has."""
        if not self.retired:
            self.retired = True
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        if self.sock.fileno() < 0:
            return
        if not self.loop.is_closed():
            self.loop.remove_reader(self.sock)
        with contextlib.suppress(OSError):
            while data := self.sock.recv(65_536):
                self._take(data)
        self.sock.close()
        self.retired = True
        self._settle()

    def _settle(self) -> None:
        if not self.answered.done() and not self.loop.is_closed():
            self.answered.set_result(self.ready)

    def kill(self) -> None:
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
        self.close()


K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=ForkServer)


class ServerPool(Generic[K, S]):
    """Fork servers by what they are for: so many at once, none idle for long, none tried in vain again and again."""

    def __init__(self, *, limit: int, idle: float, retry: float) -> None:
        self._limit, self._idle, self._retry = limit, idle, retry
        self.servers: dict[K, S] = {}
        self.leaving: set[S] = set()
        self._failed: dict[K, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def has_failed(self, key: K) -> bool:
        """Whether one for this has just been tried in vain."""
        return time.monotonic() - self._failed.get(key, -self._retry) < self._retry

    def note_failure(self, key: K) -> None:
        self._failed[key] = time.monotonic()

    def keep(self, key: K, server: S) -> None:
        """Keep a server that was just started; the one used longest ago makes room."""
        self.servers[key] = server
        server.ended.add_done_callback(lambda _: self._gone(key, server))
        while len(self.servers) > self._limit:
            self.let_go(min(self.servers, key=lambda one: self.servers[one].used))
        if self._timer is None:
            self._timer = server.loop.call_later(self._idle / 2, self._let_idle_go, server.loop)

    def let_go(self, key: K) -> None:
        """Give a server no more work, and remember it until it has gone."""
        server = self.servers.pop(key)
        if not server.ended.done():
            self.leaving.add(server)
        server.retire()

    def _let_idle_go(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for key, server in tuple(self.servers.items()):
            if server.loop is not loop or time.monotonic() - server.used >= self._idle:
                self.let_go(key)
        if self.servers:
            self._timer = loop.call_later(self._idle / 2, self._let_idle_go, loop)

    def _gone(self, key: K, server: S) -> None:
        if self.servers.get(key) is server:
            del self.servers[key]
            if not server.ready:
                self.note_failure(key)
            self.unexpected(server)
        self.leaving.discard(server)

    def unexpected(self, server: S) -> None:
        """A server has ended that had not been let go."""

    async def aclose(self, patience: float) -> None:
        """Let go of every server; one that has not ended after some seconds is killed. None is left afterwards."""
        if self._timer is not None:
            self._timer.cancel()
        for key in tuple(self.servers):
            self.let_go(key)
        loop = asyncio.get_running_loop()
        here = [server for server in self.leaving if server.loop is loop]
        for server in self.leaving - {*here}:
            server.kill()
        if here:
            await asyncio.wait([server.ended for server in here], timeout=patience)
        for server in here:
            server.kill()
            await server.ended


# -- whether files are still what they were: by their stamps, and by content where a stamp could lie ------------------


GRANULARITY = 2.0  # seconds in which a file can change twice without its times showing it, on the coarsest file systems

Stamp = tuple[int, ...] | None


class Stamps:
    """The state of some files at one moment; `since` is when the first of them may have been read.

    A file that changed after that moment may have been read in its old state, so such stamps are never fresh. One that
    changed shortly before could change again within the same tick of its times: for those the content is compared.
    """

    def __init__(self, paths: Iterable[str], since: float) -> None:
        self._stamps = {path: stamp(path) for path in paths}
        self._contents = {path: digest(path) for path, found in self._stamps.items() if recent(found, since)}
        changed = [max(found[3:]) / 1e9 for found in self._stamps.values() if found is not None]
        self._usable = not any(since <= moment <= time.time() for moment in changed)  # what is of the future has not

    def fresh(self) -> bool:
        if not self._usable or any(stamp(path) != found for path, found in self._stamps.items()):
            return False
        now = time.time()
        if any(digest(path) != content for path, content in self._contents.items()):
            return False
        self._contents = {path: content for path, content in self._contents.items() if recent(self._stamps[path], now)}
        return True


def stamp(path: str) -> Stamp:
    """What a change of the file changes: device, inode, size and both times; None if there is no such file."""
    try:  # without `suppress`, as every event waits for some hundred of these
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def recent(found: Stamp, moment: float) -> bool:
    """Whether a file's times are too close to a moment to tell a further change; also if they lie after it."""
    return found is not None and max(found[3], found[4]) / 1e9 > moment - GRANULARITY


def digest(path: str) -> str:
    """The content in short; nothing if it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return hashlib.file_digest(file, hashlib.blake2b).hexdigest()
    return ""
