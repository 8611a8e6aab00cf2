"""A process that the service keeps beside itself: what it needs is imported there, and it ends with the service.

However the service ends: the process reads a pipe that only the service holds open.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from typing import Any

from hookline.core.interpreter import hookline_argv
from hookline.processes.service.pool import Log

END_LIMIT = 10.0
"""Seconds that it has to end."""


class KeptProcess:
    """One `hookline` command; `errors` is the file for what it says, of which the last line is shown."""

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
