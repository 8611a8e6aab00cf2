"""What the service keeps, a process each: the fleet, the log's way out, a crew for confined lines, the inbox."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import subprocess
import sys
import time
from typing import Any

from hookline.core.interpreter import hookline_argv
from hookline.processes.service import address
from hookline.processes.service.pool import Log

END_LIMIT = 10.0
"""Seconds that it has to end."""


class KeptProcess:
    """One `hookline` command; `errors` is the file for what it says, of which the last line is shown.

    It ends with the service, however that ends: it reads a pipe that only the service holds open.
    """

    log: Log
    what: str
    words: tuple[str, ...]
    errors: str
    env: dict[str, str]

    def __init__(self, what: str, words: tuple[str, ...], errors: str, env: dict[str, str], log: Log) -> None:
        self.what, self.words, self.errors, self.env, self.log = what, words, errors, env, log
        self.since: float = 0.0
        self.process: subprocess.Popen[bytes] | None = None

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
        """Have it end."""
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
        try:
            with open(self.errors, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it said nothing"

    def status(self) -> dict[str, Any]:
        """Which process, since when."""
        process = self.process
        running = process is not None and process.poll() is None
        return {"pid": process.pid if running and process else None, "since": self.since}


LOOK = 5.0
"""Seconds between two looks at whether this machine is in a fleet."""


class WantedProcess(KeptProcess):
    """A process that runs while files say that it is wanted."""

    unwanted = ""

    @property
    def wanted(self) -> bool:
        """Whether it is, now."""
        raise NotImplementedError

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
        if self.wanted and self.process is None:
            self.start()
        elif not self.wanted and self.process is not None:
            self.log(self.unwanted)
            self.end()


class LeafKeeper(WantedProcess):
    """The connection of one state folder, while that folder says that this machine is in a fleet."""

    unwanted = "fleet: this machine has left its fleet"

    def __init__(self, state: str, log: Log) -> None:
        words = ("fleet", "run", "--until-eof")
        super().__init__("fleet: the connection", words, f"{state}/fleet/leaf.log", environment(state), log)
        self.state = state

    @property
    def wanted(self) -> bool:
        """Whether this machine is in a fleet, and the folder is this user's alone to write."""
        try:
            found = os.stat(f"{self.state}/fleet/machine.json")
        except OSError:
            return False
        return found.st_uid == os.getuid() and not found.st_mode & 0o022

    def status(self) -> dict[str, Any]:
        """Which folder, which process, since when."""
        return {"state": self.state, **super().status()}


class SinkKeeper(WantedProcess):
    """Pushes the log of one state folder while the user's or the administrator's settings name a `sink`."""

    unwanted = "push: no sink is named any more"

    def __init__(self, state: str, log: Log, home: str = "") -> None:
        words, home = ("audit", "push", "--follow", "--until-eof"), home or pwd.getpwuid(os.getuid()).pw_dir
        super().__init__("push: the audit log's way out", words, f"{state}/push.log", environment(state, home), log)
        self._settings = (f"{home}/.claude/settings.json", "/etc/claude-code/managed-settings.json")

    @property
    def wanted(self) -> bool:
        """Whether a sink is named; what it is, the process reads itself."""
        return any(b'"sink"' in _contents(path) for path in self._settings)


class CrewKeeper(WantedProcess):
    """Keeps a crew for the confined lines of other programs, once a guard has had a line confined for one."""

    unwanted = "confined lines: no line is confined any more"

    def __init__(self, name: str, state: str, log: Log) -> None:
        words = ("confine", "--lines", f"{address.folder()}/{name}.lines")
        super().__init__("confined lines: the crew", words, f"{state}/lines.log", environment(state), log)
        self._calls = f"{state}/confine"

    @property
    def wanted(self) -> bool:
        """Whether lines have been confined here."""
        return sys.platform == "linux" and os.path.isdir(self._calls)


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""


def keepers(state: str, log: Log) -> tuple[list[LeafKeeper], list[SinkKeeper]]:
    """Those for the user's usual state folder, and for another, if the command that started the service uses one."""
    folders = [folder for folder in dict.fromkeys((usual_state(), state)) if os.path.isabs(folder)]
    return [LeafKeeper(folder, log) for folder in folders], [SinkKeeper(folder, log) for folder in folders]


def usual_state() -> str:
    """The state folder of this user's account, whatever a project's variables say."""
    return f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state/hookline"


def environment(state: str, home: str = "") -> dict[str, str]:
    """What a child gets: nothing of the project whose event started the service."""
    home = home or pwd.getpwuid(os.getuid()).pw_dir
    path = f"{home}/.local/bin:{home}/bin:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": home, "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": os.path.dirname(state)}


# -- the inbox of open questions: started when one is asked for -------------------------------------------------------


PAUSE = 1.0
"""Seconds between two starts, so that a process that cannot run is not started without end."""


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

    @property
    def running(self) -> bool:
        """Whether it has something to do: it ends when it has not."""
        return self.process is not None and self.process.poll() is None

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
                    asked = loop.create_future()
                    loop.add_reader(listener, _settle, asked)
                    await asked
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


def _settle(asked: asyncio.Future[None]) -> None:
    if not asked.done():
        asked.set_result(None)
