"""Keeps an enrolled machine connected to its fleet: a process of its own, started again when it ends.

The service needs the standard library only; what the connection needs is imported there, in the child. The child ends
with the service, however that ends: it reads a pipe that only the service holds open.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import subprocess
import time
from typing import Any

from hookline.core.interpreter import hookline_argv
from hookline.processes.service.pool import Log

LOOK = 5.0
"""Seconds between two looks at whether this machine is in a fleet."""
END_LIMIT = 10.0
"""Seconds that a connection has to end."""


class LeafKeeper:
    """The connection of one state folder, while that folder says that this machine is in a fleet."""

    log: Log
    state: str

    def __init__(self, state: str, log: Log) -> None:
        self.state, self.log = state, log
        self.since: float = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def wanted(self) -> bool:
        """Whether this machine is in a fleet, and the folder is this user's alone to write."""
        try:
            found = os.stat(f"{self.state}/fleet/machine.json")
        except OSError:
            return False
        return found.st_uid == os.getuid() and not found.st_mode & 0o022

    async def run(self) -> None:
        """Look, start and start again until cancelled; then end the child."""
        try:
            while True:
                await asyncio.to_thread(self._look)
                await asyncio.sleep(LOOK)
        finally:
            self._end()

    def _look(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self.log(f"fleet: the connection ended with exit code {self._process.returncode}; {self._last_words()}")
            self._process = None
        if self.wanted and self._process is None:
            self._start()
        elif not self.wanted and self._process is not None:
            self.log("fleet: this machine has left its fleet")
            self._end()

    def _start(self) -> None:
        try:
            with open(f"{self.state}/fleet/leaf.log", "wb") as errors:
                self._process = subprocess.Popen(
                    hookline_argv("fleet", "run", "--until-eof"), stdin=subprocess.PIPE, stdout=errors, stderr=errors,
                    cwd="/", env=environment(self.state),
                )  # fmt: skip
        except OSError as problem:
            self.log(f"fleet: the connection cannot be started: {problem}")
            return
        self.since = time.time()
        self.log(f"fleet: pid {self._process.pid} keeps this machine connected")

    def _end(self) -> None:
        process, self._process = self._process, None
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
            with open(f"{self.state}/fleet/leaf.log", encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it said nothing"

    def status(self) -> dict[str, Any]:
        """Which folder, which process, since when."""
        process = self._process
        running = process is not None and process.poll() is None
        return {"state": self.state, "pid": process.pid if running and process else None, "since": self.since}


def keepers(state: str, log: Log) -> list[LeafKeeper]:
    """One for the user's usual state folder, and one for another, if the command that started the service uses one."""
    usual = f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state/hookline"
    return [LeafKeeper(folder, log) for folder in dict.fromkeys((usual, state)) if os.path.isabs(folder)]


def environment(state: str) -> dict[str, str]:
    """What the child gets: nothing of the project whose event started the service."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    path = f"{home}/.local/bin:{home}/bin:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": home, "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": os.path.dirname(state)}
