"""Moves bytes to and from a CLI, and ends it in good order.

A `Transport` is all the client needs of the outside; a fake of forty lines can stand in for it:

    await transport.start(receiver)     receiver.received(chunk) … then receiver.ended(exit), once
    transport.write(data)               never waits; `await transport.drain()` does, while the peer is slow to read
    transport.pause() / resume()        stop taking bytes from the peer, and go on
    await transport.close()             close its stdin, wait, TERM, wait, KILL
    transport.stderr                    its last words so far
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import Struct

from hookline.errors import CliNotFound

STDERR_KEPT = 8 * 1024
GRACE = 5.0
GRACE_AFTER_TERM = 2.0
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class PeerExit(Struct, frozen=True):
    """How the peer ended: its exit code (negative for a signal) and the end of its stderr."""

    code: int | None
    stderr: str = ""


class Receiver(Protocol):
    """Who is told what the peer said, and that it ended."""

    def received(self, data: bytes) -> None: ...

    def ended(self, exit: PeerExit) -> None: ...


class Transport(Protocol):
    """A pipe to a CLI."""

    async def start(self, receiver: Receiver) -> None: ...

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def end_input(self) -> None: ...

    async def close(self, grace: float | None = None) -> None: ...

    @property
    def stderr(self) -> str: ...


class _Pipes(asyncio.SubprocessProtocol):
    """The callbacks of one child process: stdout to the receiver, the end of stderr kept, one `ended` at the end."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._stderr = bytearray()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.over = asyncio.Event()
        self.exited = False
        self._patience: asyncio.TimerHandle | None = None
        self.transport: asyncio.SubprocessTransport | None = None

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")[-STDERR_KEPT:]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._receiver.received(data)
            return
        self._stderr += data
        if len(self._stderr) > 2 * STDERR_KEPT:
            del self._stderr[:-STDERR_KEPT]

    def pause_writing(self) -> None:
        self.may_write.clear()

    def resume_writing(self) -> None:
        self.may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called once the process has ended and its pipes are closed."""
        self.may_write.set()
        self.over.set()
        self._close_pipes()
        code = self.transport.get_returncode() if self.transport else None
        self._receiver.ended(PeerExit(code, self.stderr))

    def process_exited(self) -> None:
        """What it wrote is in the pipe already, so take it; a grandchild that holds the pipe open is not waited for."""
        self.exited = True
        stdout: Any = self.transport.get_pipe_transport(1) if self.transport else None
        if stdout is not None and not stdout.is_closing():
            stdout.resume_reading()
        self._patience = asyncio.get_running_loop().call_later(1.0, self._close_pipes)

    def _close_pipes(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if self.transport is not None:
            self.transport.close()


class Subprocess:
    """The transport for a CLI that is a program: its own session, so a Ctrl-C meant for us does not reach it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = GRACE,
    ) -> None:
        self.argv: list[str] = list(argv)
        self._cwd = cwd
        self._env = None if env is None else dict(env)
        self._grace = grace
        self._pipes: _Pipes | None = None
        self._closing: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        loop = asyncio.get_running_loop()
        own_session: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
        try:
            _, self._pipes = await loop.subprocess_exec(
                lambda: _Pipes(receiver), *self.argv, cwd=self._cwd, env=self._env, **own_session
            )
        except OSError as problem:
            raise CliNotFound(_why_not(self.argv[0], self._cwd, problem)) from problem

    @property
    def pid(self) -> int | None:
        return self._child.get_pid() if self._pipes else None

    @property
    def stderr(self) -> str:
        return self._pipes.stderr if self._pipes else ""

    @property
    def _child(self) -> asyncio.SubprocessTransport:
        if self._pipes is None or self._pipes.transport is None:
            raise CliNotFound("the CLI is not running; call start() first")
        return self._pipes.transport

    def _pipe(self, fd: int) -> Any:
        """The child's end of a descriptor, as long as it is open."""
        pipe = self._child.get_pipe_transport(fd)
        return None if pipe is None or pipe.is_closing() else pipe

    def write(self, data: bytes) -> None:
        if pipe := self._pipe(0):
            pipe.write(data)

    async def drain(self) -> None:
        if self._pipes is not None:
            await self._pipes.may_write.wait()

    def pause(self) -> None:
        if (pipe := self._pipe(1)) and self._pipes is not None and not self._pipes.exited:
            pipe.pause_reading()

    def resume(self) -> None:
        if pipe := self._pipe(1):
            pipe.resume_reading()

    def end_input(self) -> None:
        if pipe := self._pipe(0):
            pipe.close()

    async def close(self, grace: float | None = None) -> None:
        """Ends the CLI, which has `grace` seconds to end by itself; a cancelled caller does not leave it running."""
        if self._pipes is None:
            return
        if self._closing is None:
            ending = self._end(self._pipes.over, self._grace if grace is None else grace)
            self._closing = asyncio.get_running_loop().create_task(ending)
        await asyncio.shield(self._closing)

    async def _end(self, over: asyncio.Event, grace: float) -> None:
        """A signal to the CLI first; at the end to everything it started."""
        self.end_input()
        self.resume()
        for wait, number in ((grace, signal.SIGTERM), (GRACE_AFTER_TERM, _KILL)):
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await over.wait()
                return
            with suppress(ProcessLookupError):
                if number == _KILL and os.name == "posix":
                    os.killpg(self._child.get_pid(), number)
                else:
                    self._child.send_signal(number)
        await over.wait()


def _why_not(program: str, cwd: str | None, problem: OSError) -> str:
    if cwd is not None and not Path(cwd).is_dir():
        return f"cannot start in `{cwd}`: there is no such directory; pass another cwd="
    return f"cannot start `{program}`: {problem.strerror or problem}; pass cli= or install Claude Code"
