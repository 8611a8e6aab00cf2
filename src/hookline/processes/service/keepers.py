"""What the service keeps, a process each: the fleet, the log's way out, a crew for confined lines, the inbox."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hookline.core.interpreter import account_home, hookline_argv
from hookline.processes.service import address
from hookline.processes.service.pool import Log

END_LIMIT = 10.0  # seconds that it has to end


@dataclass(eq=False)
class KeptProcess:
    """One `hookline` command; `errors` is the file for what it says, of which the last line is shown.

    It ends with the service, however that ends: it reads a pipe that only the service holds open.
    """

    what: str
    words: tuple[str, ...]
    errors: str
    env: dict[str, str]
    log: Log
    since: float = 0.0
    process: subprocess.Popen[bytes] | None = None

    def start(self, *fds: int) -> None:
        """Start it; descriptors go along under their own numbers, as its last words."""
        try:
            os.makedirs(os.path.dirname(self.errors), 0o700, exist_ok=True)
            with open(self.errors, "wb") as errors:
                self.process = subprocess.Popen(
                    hookline_argv(*self.words, *map(str, fds)), stdin=subprocess.PIPE, stdout=errors, stderr=errors,
                    cwd="/", env=self.env, pass_fds=fds,
                )  # fmt: skip
        except OSError as problem:
            self.log(f"{self.what} cannot be started: {problem}")
            return
        self.since = time.time()
        self.log(f"{self.what} has pid {self.process.pid}")

    def has_ended(self) -> bool:
        """Whether it has ended by itself; then it is forgotten."""
        if self.process is None or self.process.poll() is None:
            return False
        self.log(f"{self.what} ended with exit code {self.process.returncode}; {self._last_words()}")
        self.end()
        return True

    def end(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _last_words(self) -> str:
        lines = []
        with contextlib.suppress(OSError), open(self.errors, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        return lines[-1] if lines else "it said nothing"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def status(self) -> dict[str, Any]:
        return {"pid": self.process.pid if self.process and self.running else None, "since": self.since}


LOOK = 5.0  # seconds between two looks at whether this machine is in a fleet


@dataclass(eq=False, kw_only=True)
class WantedProcess(KeptProcess):
    """A process that runs while files say that it is wanted; `unwanted` is what the log says when they no longer do."""

    wanted: Callable[[], bool]
    unwanted: str

    async def run(self) -> None:
        """Look, start and start again until cancelled; then end the child."""
        try:
            while True:
                await asyncio.to_thread(self._look)
                await asyncio.sleep(LOOK)
        finally:
            self.end()

    def _look(self) -> None:
        self.has_ended()
        wanted = self.wanted()
        if wanted and self.process is None:
            self.start()
        elif not wanted and self.process is not None:
            self.log(self.unwanted)
            self.end()


def keep_leaf(state: str, log: Log) -> WantedProcess:
    """The connection of one state folder, while it says that this machine is in a fleet and is its user's to write."""

    def wanted() -> bool:
        with contextlib.suppress(OSError):
            found = os.stat(f"{state}/fleet/machine.json")
            return found.st_uid == os.getuid() and not found.st_mode & 0o022
        return False

    words = ("fleet", "run", "--until-eof")
    return WantedProcess("fleet: the connection", words, f"{state}/fleet/leaf.log", environment(state), log,
                         wanted=wanted, unwanted="fleet: this machine has left its fleet")  # fmt: skip


def keep_sink(state: str, log: Log, home: str = "") -> WantedProcess:
    """Pushes the log of one state folder while the user's or the administrator's settings name a `sink`."""
    home = home or account_home()

    def wanted() -> bool:
        for path in (f"{home}/.claude/settings.json", "/etc/claude-code/managed-settings.json"):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                if b'"sink"' in file.read(1 << 20):  # what it is, the process reads itself
                    return True
        return False

    words = ("audit", "push", "--follow", "--until-eof")
    return WantedProcess("push: the audit log's way out", words, f"{state}/push.log", environment(state, home), log,
                         wanted=wanted, unwanted="push: no sink is named any more")  # fmt: skip


def keep_crew(name: str, state: str, log: Log) -> WantedProcess:
    """Keeps a crew for the confined lines of other programs, once a guard has had a line confined for one."""

    def wanted() -> bool:
        return sys.platform == "linux" and os.path.isdir(f"{state}/confine")

    words = ("confine", "--lines", f"{address.folder()}/{name}.lines")
    return WantedProcess("confined lines: the crew", words, f"{state}/lines.log", environment(state), log,
                         wanted=wanted, unwanted="confined lines: no line is confined any more")  # fmt: skip


def usual_state() -> str:
    """The state folder of this user's account, whatever a project's variables say."""
    return f"{account_home()}/.local/state/hookline"


def environment(state: str, home: str = "") -> dict[str, str]:
    """What a child gets: nothing of the project whose event started the service."""
    home = home or account_home()
    path = f"{home}/.local/bin:{home}/bin:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": home, "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": os.path.dirname(state)}


# -- the inbox of open questions: started when one is asked for -------------------------------------------------------


PAUSE = 1.0  # seconds between two starts, so that a process that cannot run is not started without end


class InboxKeeper(KeptProcess):
    """The process that keeps the questions of this service's user.

    The service only holds the socket, so that no question is lost between two of these processes. The settings that
    say who may approve are the account's; a service with a name of its own, as tests have, takes those of the user it
    was started for.
    """

    def __init__(self, name: str, home: str, state: str, log: Log) -> None:
        if name == address.DEFAULT or not (os.path.isabs(state) and os.path.isabs(home)):
            home, state = "", usual_state()
        env = environment(state, home) | {"HOOKLINE_SERVICE": name}
        super().__init__("the inbox", ("inbox", "serve"), f"{state}/inbox/inbox.log", env, log)
        self.path: str = f"{name}.inbox.sock"

    async def run(self) -> None:
        """Wait for a connection, start the process that takes it, and again when it has ended; until cancelled."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # the service holds its lock, so the one that made it has gone
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self.path)
            listener.listen(64)
            try:
                while True:
                    asked = asyncio.Event()
                    loop.add_reader(listener, asked.set)
                    await asked.wait()
                    loop.remove_reader(listener)
                    begun = time.monotonic()
                    self.start(listener.fileno())
                    if self.process is not None:
                        await asyncio.to_thread(self.process.wait)
                        self.has_ended()
                    await asyncio.sleep(max(0.0, begun + PAUSE - time.monotonic()))
            finally:
                loop.remove_reader(listener)
                self.end()
                with contextlib.suppress(OSError):
                    os.unlink(self.path)
