"""One shell command: its own process group, its output bounded, and where it left the working directory.

The shell tells its final directory through a pipe of its own, so no temporary file is needed and the command cannot be
confused with it. Exports that hooks wrote into CLAUDE_ENV_FILE scripts are read before the command.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

__all__ = ["Bounded", "Shell", "kill_group"]

READ_SIZE = 1 << 16
#: how long output still in the pipe is awaited once the command has ended but a child of it holds the pipe
GRACE = 0.2


class Bounded:
    """Keeps the first and the last part of what is fed and counts the rest, so a command may print any amount."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece of output."""
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data[-self._half :])
            self._tail_size += len(self._tail[-1])
        while self._tail and self._tail_size - len(self._tail[0]) >= self._half:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """The output, or its two ends around a line that says how much is missing."""
        tail = b"".join(self._tail)[-self._half :]
        cut = self.total - len(self._head) - len(tail)
        head, end = self._head.decode("utf-8", "replace"), tail.decode("utf-8", "replace")
        if not cut:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return f"{head}\n\n… {cut} bytes of output left out …\n\n{end}"


class Shell:
    """A command to start, wait for and, if need be, kill with everything it started."""

    def __init__(self, command: str, cwd: str, environ: Mapping[str, str], env_files: Sequence[Path] = ()) -> None:
        self.command = command
        self.cwd = cwd
        self._environ = dict(environ)
        self._env_files = env_files
        self._process: asyncio.subprocess.Process | None = None
        self._cwd_pipe: int | None = None

    async def start(self, stdout: int | None = None) -> None:
        """Start it; `stdout` takes both streams, a pipe to read from if None."""
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                shell_path(),
                "-c",
                script(self.command, self._env_files, theirs),
                cwd=self.cwd,
                env=self._environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if stdout is None else stdout,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(theirs,),
                limit=READ_SIZE,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._cwd_pipe = ours

    @property
    def group(self) -> int:
        """The process group everything the command starts belongs to."""
        assert self._process is not None, "start it first"
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the command itself is over."""
        return self._process is not None and self._process.returncode is not None

    async def read(self, sink: Bounded, progress: Callable[[str, str], None] | None = None) -> int:
        """Feed the output to `sink` until the command ends; its exit code."""
        reader = asyncio.create_task(self._drain(sink, progress))
        try:
            code = await self.wait()
            await asyncio.wait({reader}, timeout=GRACE)
        finally:
            if not reader.done():
                reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
        return code

    async def wait(self) -> int:
        """The exit code; 128 + n for signal n, as shells count."""
        assert self._process is not None, "start it first"
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    def final_cwd(self) -> str | None:
        """Where the command left the shell; None if it never got to say (it failed or was killed)."""
        if self._cwd_pipe is None:
            return None
        try:
            told = os.read(self._cwd_pipe, READ_SIZE)
        except BlockingIOError:
            return None
        return os.fsdecode(told).removesuffix("\n") or None

    def kill(self) -> None:
        """End the command and everything in its group, at once."""
        if self._process is not None:
            kill_group(self._process.pid)

    def group_alive(self) -> bool:
        """Whether something the command started is still there."""
        try:
            os.killpg(self.group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def close(self) -> None:
        """Give back the pipes."""
        if self._cwd_pipe is not None:
            os.close(self._cwd_pipe)
            self._cwd_pipe = None
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _drain(self, sink: Bounded, progress: Callable[[str, str], None] | None) -> None:
        assert self._process is not None, "start it first"
        assert self._process.stdout is not None, "started with a pipe"
        while data := await self._process.stdout.read(READ_SIZE):
            sink.feed(data)
            if progress:
                progress("stdout", data.decode("utf-8", "replace"))


def kill_group(group: int) -> None:
    """SIGKILL to a whole process group; gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@cache
def shell_path() -> str:
    """The shell: bash where there is one, since models write bash; else sh."""
    return shutil.which("bash") or "/bin/sh"


def script(command: str, env_files: Sequence[Path], cwd_fd: int) -> str:
    """The command as the shell runs it: exports first, then itself, then where it ended, if it went well."""
    exports = "".join(f". {shlex.quote(str(path))}\n" for path in env_files if path.is_file())
    return f"{exports}eval {shlex.quote(command)} {cwd_fd}>&- && pwd -P >&{cwd_fd}\n"
