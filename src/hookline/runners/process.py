"""Run one program to its end: bounded, watched, and never left behind.

`run_process` starts a program in a process group of its own, feeds it, reads what it prints and waits for it. On a
timeout, a cancellation or too much output everything the program started is ended, TERM first, then KILL; `ending.py`
says who that is. A program that ended well may leave a daemon behind, as long as the daemon has let go of stdout and
stderr: whoever still holds them a second after the program has ended is taken for a left-over and ended too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import msgspec

from hookline.runners.ending import MARKER, Group, new_marker
from hookline.runners.slots import slots

OUTPUT_LIMIT = 10_000_000
"""Bytes of stdout and stderr together; a program that prints more is ended."""
HELD_PIPE = 1.0
"""Seconds that a grandchild holding the pipes may delay the result (FACTS §6, `run_grandchild`)."""
READ_SIZE = 65_536
READS = 4
"""Pieces that are read from one program before others get their turn."""

Stream = Literal["stdout", "stderr"]
Ended = Literal["exit", "timeout", "cancelled", "overflow"]
OnOutput = Callable[[Stream, bytes], None]


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What to start: the program with its arguments, where, with which environment, and what it reads."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    stdin: bytes = b""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended: by itself (`exit_code` or `signal`), or because we ended it (`ended`)."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    ended: Ended = "exit"
    held: bool = False
    """Some process kept stdout or stderr open after the program had ended; it was ended too."""
    warm: bool = False
    pid: int = 0

    @property
    def timed_out(self) -> bool:
        return self.ended == "timeout"

    @property
    def truncated(self) -> bool:
        return self.ended == "overflow"


class Child(msgspec.Struct):
    """A started program: our ends of its pipes, and the future of its return code (negative: the signal)."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    exit: asyncio.Future[int | None]
    warm: bool = False
    last_words: bytes = b""
    """What a skipped shell would have added to stderr; known when `exit` is."""
    reap: Callable[[], None] | None = None
    """Looks whether it has ended already, so that `exit` is known without another turn of the loop."""


Launch = Callable[[ProcessSpec], Awaitable[Child]]


async def run_process(
    spec: ProcessSpec,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - a timeout has a result of its own: what was printed, how it ended
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
    cancelled: Awaitable[object] | None = None,
    launch: Launch | None = None,
) -> Finished:
    """Run a program and say how it ended; an `OSError` says that it could not be started.

    `timeout` counts from the start of the program, not from the wait for a free slot. Cancelling the task, or
    `cancelled` becoming done, ends the program and all it started before this returns.
    """
    run = await start_process(spec, limit=limit, on_output=on_output, launch=launch)
    finished = await run.finish(timeout, cancelled)
    assert finished is not None  # nothing detaches it
    return finished


async def start_process(
    spec: ProcessSpec,
    *,
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
    launch: Launch | None = None,
    keep_stdin: bool = False,
) -> Process:
    """Start a program whose end is awaited by `finish`, perhaps in two parts; whoever starts one must finish it.

    With `keep_stdin` more can be said to it later, by `say`.
    """
    marked, marker = mark(spec)
    async with slots().hold() as slot:
        child = await (launch or spawn)(marked)
        slot.leave_with(child.exit)
        process = Process(child, Group(child.pid, marker), limit, on_output)
        process.keep_stdin = keep_stdin
        process.say(spec.stdin)
        return process


def mark(spec: ProcessSpec) -> tuple[ProcessSpec, str]:
    """The same program with an environment entry by which everything it starts can be found."""
    env = dict(os.environ if spec.env is None else spec.env)
    marker = new_marker()
    outer = os.environ.get(MARKER)
    env[MARKER] = f"{outer}/{marker}" if outer else marker
    return ProcessSpec(argv=spec.argv, cwd=spec.cwd, env=env, stdin=spec.stdin), marker


async def spawn(spec: ProcessSpec) -> Child:
    """Start a program the ordinary way: vfork, its own process group, three pipes."""
    loop = asyncio.get_running_loop()
    pipes = Pipes()
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - it returns as soon as the program has begun
            spec.argv,
            cwd=spec.cwd,
            env=spec.env,
            stdin=pipes.theirs[0],
            stdout=pipes.theirs[1],
            stderr=pipes.theirs[2],
            process_group=0,  # not a new session: the scheduler would make every hook a task group of its own
        )
    except BaseException:
        pipes.close()
        raise
    pipes.close_theirs()
    ended, reap = _watched(process, loop)
    return Child(process.pid, *pipes.ours, ended, reap=reap)


class Pipes:
    """Three pipes: `theirs` are stdin, stdout and stderr of a child, `ours` the other ends, non-blocking."""

    def __init__(self) -> None:
        self._open: list[int] = []
        try:
            for _ in range(3):
                self._open.extend(os.pipe())
        except OSError:
            self.close()
            raise
        in_r, in_w, out_r, out_w, err_r, err_w = self._open
        self.theirs = (in_r, out_w, err_w)
        self.ours = (in_w, out_r, err_r)
        for fd in self.ours:
            os.set_blocking(fd, False)

    def close_theirs(self) -> None:
        for fd in self.theirs:
            os.close(fd)

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)


Reap = Callable[[], None]


def watch(process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> asyncio.Future[int | None]:
    """The return code of a process we started, as a future; the process is reaped when it resolves."""
    return _watched(process, loop)[0]


def _watched(
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop
) -> tuple[asyncio.Future[int | None], Reap | None]:
    """The future of the return code, and a function that looks whether the process has ended already."""
    ended: asyncio.Future[int | None] = loop.create_future()
    try:
        pidfd = os.pidfd_open(process.pid) if sys.platform == "linux" else -1
    except OSError:
        pidfd = -1
    if pidfd < 0:
        _watch_in_thread(process, loop, ended)
        return ended, None

    def reap() -> None:
        code = process.poll()
        if code is not None and not ended.done():
            loop.remove_reader(pidfd)
            os.close(pidfd)
            ended.set_result(code)

    loop.add_reader(pidfd, reap)
    return ended, reap


def _watch_in_thread(
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, ended: asyncio.Future[int | None]
) -> None:
    import threading

    def tell(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def wait() -> None:
        code = process.wait()
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody listens any more
            loop.call_soon_threadsafe(tell, code)

    threading.Thread(target=wait, name=f"hookline-wait-{process.pid}", daemon=True).start()


class Process:
    """One started program, from its first byte of input to the result."""

    def __init__(self, child: Child, group: Group, limit: int, on_output: OnOutput | None) -> None:
        self.child = child
        self.group = group
        self.limit = self.room = limit
        self.keep_stdin = False
        self.on_output = on_output
        self.loop = asyncio.get_running_loop()
        self.ended: Ended = "exit"
        self.held = False
        self.output: dict[int, bytearray] = {}
        self.open: dict[int, Stream] = {child.stdout: "stdout", child.stderr: "stderr"}
        self.pending = memoryview(b"")
        self.detached = False
        self.over: asyncio.Future[None] = self.loop.create_future()
        self.timers: list[asyncio.TimerHandle] = []
        for fd in self.open:
            self.output[fd] = bytearray()
            self.loop.add_reader(fd, self._read, fd)
        child.exit.add_done_callback(self._exited)

    def say(self, data: bytes) -> None:
        """Write to its stdin, as fast as it reads; what it does not want to read is dropped."""
        self.pending = memoryview(bytes(self.pending) + data) if self.pending else memoryview(data)
        if self.child.stdin >= 0:
            self._write()

    def forget_output(self) -> None:
        """Keep nothing of what was printed so far, nor count it."""
        self.room = self.limit
        for kept in self.output.values():
            kept.clear()

    async def finish(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as for `run_process`
        cancelled: Awaitable[object] | None = None,
    ) -> Finished | None:
        """Wait for the end and say how it was; None if `detach` was called: then `finish` is to be awaited again."""
        if timeout is not None:
            self.timers.append(self.loop.call_later(timeout, self._stop, "timeout"))
        watcher = asyncio.ensure_future(cancelled) if cancelled is not None else None
        if watcher is not None:
            watcher.add_done_callback(lambda _: self._stop("cancelled"))
        try:
            await self.over
            if self.ended != "exit" or self.held:
                await self._end()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            await self._end_whatever_happens()
            self._close()
            raise
        except GeneratorExit:  # closed from outside, where nothing can be awaited any more
            self.ended = "cancelled"
            _keep(self.loop.create_task(self._end_and_close()))
            raise
        finally:
            if watcher is not None:
                watcher.cancel()
        if self.detached:
            self._forget_timers()
            self.detached, self.over = False, self.loop.create_future()
            if self.child.exit.done():
                self._exited(self.child.exit)
            return None
        self._close()
        return self._result()

    def detach(self) -> None:
        """Let whoever awaits `finish` go on; the program goes on too."""
        if not self.over.done():
            self.detached = True
            self.over.set_result(None)

    # ---- what happens meanwhile

    def _write(self) -> None:
        fd = self.child.stdin
        try:
            while self.pending:
                self.pending = self.pending[os.write(fd, self.pending) :]
        except BlockingIOError:
            self.loop.add_writer(fd, self._write)
            return
        except OSError:  # it does not want to read: its right (FACTS §6, `run_nostdin`)
            self._close_stdin()
            return
        if self.keep_stdin:
            self.loop.remove_writer(fd)
        else:
            self._close_stdin()

    def _close_stdin(self) -> None:
        fd, self.child.stdin = self.child.stdin, -1
        if fd >= 0:
            self.loop.remove_writer(fd)
            os.close(fd)

    def _read(self, fd: int) -> None:
        for _ in range(READS):
            try:
                data = os.read(fd, READ_SIZE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._close_stream(fd)
                self._look_around()
                return
            self._take(fd, data)
            if self.over.done():
                return

    def _take(self, fd: int, data: bytes) -> None:
        kept = data[: self.room]
        self.room -= len(kept)
        self.output[fd] += kept
        if self.on_output is not None and kept:
            self.on_output(self.open[fd], kept)
        if len(kept) < len(data):
            self._stop("overflow")

    def _look_around(self) -> None:
        """One stream has ended, so the rest probably has too: look at once instead of waiting for the loop to tell."""
        for fd in tuple(self.open):
            self._read(fd)
        if not self.open and self.child.reap is not None and not self.child.exit.done():
            self.child.reap()
            self._settle()

    def _close_stream(self, fd: int) -> None:
        if self.open.pop(fd, None) is not None:
            self.loop.remove_reader(fd)
            os.close(fd)
        self._settle()

    def _exited(self, _: asyncio.Future[int | None]) -> None:
        if self.open and not self.over.done():
            self.timers.append(self.loop.call_later(HELD_PIPE, self._let_go))
        self._settle()

    def _let_go(self) -> None:
        """The program has ended, yet someone keeps its pipes open: stop listening."""
        self.held = True
        for fd in tuple(self.open):
            self._close_stream(fd)

    def _settle(self) -> None:
        if not self.open and self.child.exit.done() and not self.over.done():
            self.over.set_result(None)

    def _stop(self, why: Ended) -> None:
        if not self.over.done():
            self.ended = why
            self.over.set_result(None)

    # ---- the end

    async def _end(self) -> None:
        self._quiet()
        await self.group.end(self.child.exit)

    async def _end_whatever_happens(self) -> None:
        """Ending takes a second at most; a second cancellation does not hurry it."""
        ending = self.loop.create_task(self._end())
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        ending.result()

    async def _end_and_close(self) -> None:
        await self._end()
        self._close()

    def _quiet(self) -> None:
        """Throw away what is still printed, so that a full pipe cannot keep the program from ending."""
        self.on_output = None
        self._close_stdin()
        for fd in tuple(self.open):
            self.loop.remove_reader(fd)
            self.loop.add_reader(fd, self._discard, fd)

    def _discard(self, fd: int) -> None:
        try:
            if not os.read(fd, READ_SIZE):
                self._close_stream(fd)
        except BlockingIOError:
            pass
        except OSError:
            self._close_stream(fd)

    def _close(self) -> None:
        self._forget_timers()
        self._close_stdin()
        for fd in tuple(self.open):
            self._close_stream(fd)

    def _forget_timers(self) -> None:
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()

    def _result(self) -> Finished:
        code = self.child.exit.result() if self.child.exit.done() else None
        killed = code is not None and code < 0
        return Finished(
            exit_code=None if code is None or killed else code,
            signal=-code if code is not None and killed else None,
            stdout=bytes(self.output[self.child.stdout]),
            stderr=bytes(self.output[self.child.stderr]) + self.child.last_words,
            ended=self.ended,
            held=self.held,
            warm=self.child.warm,
            pid=self.child.pid,
        )


_KEPT: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    """Hold on to a task that nobody awaits, until it is done."""
    _KEPT.add(task)
    task.add_done_callback(_KEPT.discard)
