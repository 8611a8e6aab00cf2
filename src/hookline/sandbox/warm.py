"""Starting confined lines from a program that runs on: without a new interpreter for each."""

from __future__ import annotations

import atexit
import marshal
import os
import socket
import subprocess
from collections.abc import Mapping

from hookline.core.interpreter import launch_argv
from hookline.sandbox.policy import Policy

_MOST, _TRIES = 10, 3


class WarmLine:
    """A line that was started: its process, which leads a session of its own, and where its exit code arrives."""

    pid: int
    status: int

    def __init__(self, pid: int, status: int) -> None:
        self.pid, self.status = pid, status

    def exit_code(self) -> int | None:
        """Wait for the line to end; 137 if it was killed, None if no process was left to tell."""
        try:
            told = os.read(self.status, 4)
        finally:
            os.close(self.status)
        return int.from_bytes(told, "little") if told else None


class WarmStarter:
    """Starts confined lines through a process that is kept for this, and started with the first of them."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def start(
        self, policy: Policy, command: list[str], *, cwd: str, env: Mapping[str, str], files: Mapping[int, int]
    ) -> WarmLine:
        """Start a command; `files` are its descriptors, by the numbers it will have. OSError if it cannot be."""
        if [*files][:3] != [0, 1, 2] or max(files) >= _MOST:
            raise ValueError(f"the descriptors of a line are 0, 1, 2 and numbers below {_MOST}")
        order = os.memfd_create("line")
        try:
            words = [*policy.arguments(), "--", *command]
            os.write(order, marshal.dumps((cwd, words, dict(env), list(files))))
            for _ in range(_TRIES):
                line = self._start([order, *files.values()])
                if line is not None:
                    return line
        finally:
            os.close(order)
        raise ConnectionError("the line was not started")

    def _start(self, descriptors: list[int]) -> WarmLine | None:
        """The line that was started; None if the crew that took it was killed before, so that nothing has run."""
        status, tell = os.pipe()
        try:
            self._send([tell, *descriptors])
        except OSError:
            os.close(status)
            raise
        finally:
            os.close(tell)
        told = os.read(status, 4)
        if told:
            return WarmLine(int.from_bytes(told, "little"), status)
        os.close(status)
        return None

    def _send(self, descriptors: list[int]) -> None:
        if self._channel is None or self._owner != os.getpid():
            self._open()
        assert self._channel is not None
        try:
            socket.send_fds(self._channel, [b"."], descriptors)
        except OSError:
            self._open()
            socket.send_fds(self._channel, [b"."], descriptors)

    def _open(self) -> None:
        """Start the process that starts lines; it ends when our end of the channel is closed."""
        self.close()
        if not self._owner:
            atexit.register(self.close)
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*launch_argv(), "--serve", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        self._channel, self._owner = ours, os.getpid()

    def close(self) -> None:
        """Let go of the process; lines that it has started go on."""
        if self._channel is not None:
            self._channel.close()
        if self.process is not None and self._owner == os.getpid():
            self.process.wait()
        self._channel = self.process = None
