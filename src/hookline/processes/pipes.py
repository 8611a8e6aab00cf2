"""Run one program to its end: bounded, watched, and never left behind.

`start_process` starts a program in a process group of its own, feeds it and reads what it prints; `finish` waits for
it. On a timeout, a cancellation or too much output everything the program started is ended, TERM first, then KILL
(`tree` says who that is). A program that ended well may leave a daemon behind, as long as the daemon has let go of
stdout and stderr: whoever still holds them a second later is taken for a left-over and ended too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from hookline.processes.limiter import Slot, slots
from hookline.processes.spawn import Child, ProcessSpec, spawn
from hookline.processes.tree import MARKER, Group, new_marker

OUTPUT_LIMIT = 10_000_000
"""Bytes of stdout and stderr together; a program that prints more is ended."""
HELD_PIPE = 1.0
"""Seconds that a grandchild holding the pipes may delay the result (FACTS.md §6, `run_grandchild`)."""
SHORT = 0.05
"""Seconds for which only a program's stdout is listened to: most have ended by then, and it tells of that too."""
READ_SIZE = 65_536
READS = 4
"""Pieces that are read from one program before others get their turn."""

Stream = Literal["stdout", "stderr"]
Ended = Literal["exit", "timeout", "cancelled", "overflow"]
OnOutput = Callable[[Stream, bytes], None]


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
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


Launch = Callable[[ProcessSpec], Awaitable[Child]]


async def start_process(
    spec: ProcessSpec,
    *,
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
    launch: Launch | None = None,
    keep_stdin: bool = False,
    slot: Slot | None = None,
) -> Process:
    """Start a program whose end is awaited by `finish`, perhaps in two parts; whoever starts one must finish it.

    With `keep_stdin` more can be said to it later, by `say`. Who holds a `slot` already need not wait for one.
    """
    if slot is None:
        async with slots().hold() as free:
            return await start_process(
                spec, limit=limit, on_output=on_output, launch=launch, keep_stdin=keep_stdin, slot=free
            )
    marker = new_marker()
    child = await (launch or spawn)(mark(spec, marker))
    slot.leave_with(child.exit)
    process = Process(child, Group(child.pid, marker), limit, on_output, slot.give)
    process.keep_stdin = keep_stdin
    process.say(spec.stdin)
    return process


def mark(spec: ProcessSpec, marker: str) -> ProcessSpec:
    """The same program with an environment entry by which everything it starts can be found."""
    outer = os.environ.get(MARKER)
    whole = f"{outer}/{marker}" if outer else marker
    return ProcessSpec(argv=spec.argv, cwd=spec.cwd, env=spec.env, stdin=spec.stdin, marker=whole)


class Process:
    """One started program, from its first byte of input to the result; `lasting` is called if it is not a short one."""

    room: int

    def __init__(
        self, child: Child, group: Group, limit: int, on_output: OnOutput | None, lasting: Callable[[], None]
    ) -> None:
        self.child = child
        self.group = group
        self.limit = self.room = limit
        self.keep_stdin = False
        self.on_output = on_output
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.ended: Ended = "exit"
        self.held: bool = False
        self.lasting = lasting
        self.output: dict[int, bytearray] = {child.stdout: bytearray(), child.stderr: bytearray()}
        self.open: dict[int, Stream] = {child.stdout: "stdout", child.stderr: "stderr"}
        self.pending: memoryview = memoryview(b"")
        self.detached: bool = False
        self.over: asyncio.Future[None] = self.loop.create_future()
        self.heard: set[int] = {child.stdout}
        self.loop.add_reader(child.stdout, self._read, child.stdout)
        self.writing: bool = False
        child.exit.add_done_callback(self._exited)
        self.timers: list[asyncio.TimerHandle] = [self.loop.call_later(SHORT, self._attend)]

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
        timeout: float | None = None,  # noqa: ASYNC109 - a timeout has a result of its own: what was printed, how it ended
        cancelled: Awaitable[object] | None = None,
    ) -> ProcessResult | None:
        """Wait for the end and say how it was; None if `detach` was called: then `finish` is to be awaited again.

        `timeout` counts from now. Cancelling the task, or `cancelled` becoming done, ends the program and all it
        started before this returns.
        """
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
            self._attend()
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
            self.writing = True
            self.loop.add_writer(fd, self._write)
            return
        except OSError:  # it does not want to read: its right (FACTS.md §6, `run_nostdin`)
            self._close_stdin()
            return
        if self.keep_stdin:
            self._stop_writing(fd)
        else:
            self._close_stdin()

    def _stop_writing(self, fd: int) -> None:
        if self.writing:
            self.writing = False
            self.loop.remove_writer(fd)

    def _close_stdin(self) -> None:
        fd, self.child.stdin = self.child.stdin, -1
        if fd >= 0:
            self._stop_writing(fd)
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
        if self.open:
            self._attend()
        elif self.child.look is not None:
            self.child.look()
            self._settle()

    def _attend(self) -> None:
        """It has not simply printed something and ended: have the loop tell of everything."""
        self.lasting()
        for fd in tuple(self.open):
            if fd not in self.heard:
                self.heard.add(fd)
                self.loop.add_reader(fd, self._read, fd)
        if self.child.look is not None:
            self.child.look()

    def _close_stream(self, fd: int) -> None:
        if self.open.pop(fd, None) is not None:
            if fd in self.heard:
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
        self._attend()
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

    def _result(self) -> ProcessResult:
        code = self.child.exit.result() if self.child.exit.done() else None
        killed = code is not None and code < 0
        return ProcessResult(
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
