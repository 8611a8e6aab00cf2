"""Run one program to its end: bounded, watched, and never left behind.

`start_process` starts a program in a process group of its own, feeds it and reads what it prints; `finish` waits for
it. On a cancellation or too much output everything the program started is ended, TERM first, then KILL (`tree` says who
that is). A program that ended well may leave a daemon behind, as long as the daemon has let go of
stdout and stderr: a process that still holds them a second later is taken for a left-over and ended too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Literal

import msgspec

from hookline.processes.spawn import Child, ProcessSpec, Slot, spawn
from hookline.processes.tree import MARKER, Group, new_marker

OUTPUT_LIMIT = 10_000_000  # bytes of stdout and stderr together; a program that prints more is ended
HELD_PIPE = 1.0  # seconds that a grandchild holding the pipes may delay the result (FACTS.md §6, `run_grandchild`)
SHORT = 0.05
"""Seconds for which only a program's stdout is listened to: most have ended by then, and it tells of that too."""
READ_SIZE = 65_536
READS = 4  # pieces that are read from one program before others get their turn

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended: by itself (`exit_code` or `signal`), or because it printed too much (`truncated`)."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    held: bool = False  # some process kept stdout or stderr open after the program had ended; it was ended too
    warm: bool = False


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
    """Start a program whose end is awaited by `finish`, perhaps in two parts; every program must be finished.

    With `keep_stdin` more can be written to its `stdin` later. A caller that holds a `slot` need not wait for one.
    """
    async with Slot() if slot is None else nullcontext(slot) as held:
        marker = new_marker()
        child = await (launch or spawn)(mark(spec, marker))
        process = Process(child, Group(child.pid, marker), limit, on_output, held.give)
        process.stdin.stays = keep_stdin
        process.stdin.write(spec.stdin)
        return process


def mark(spec: ProcessSpec, marker: str) -> ProcessSpec:
    """The same program with an environment entry by which everything it starts can be found."""
    outer = os.environ.get(MARKER)
    whole = f"{outer}/{marker}" if outer else marker
    return ProcessSpec(argv=spec.argv, cwd=spec.cwd, env=spec.env, stdin=spec.stdin, marker=whole)


class ProgramInput:
    """What a program reads: written as fast as it reads; what it does not want to read is dropped."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd, self._loop = fd, loop
        self._pending = memoryview(b"")
        self._watched = False  # whether the loop is to tell when more can be written
        self.stays = False
        """Whether more may follow once everything is written."""

    def write(self, data: bytes) -> None:
        self._pending = memoryview(bytes(self._pending) + data) if self._pending else memoryview(data)
        if self._fd >= 0:
            self._go_on()

    def _go_on(self) -> None:
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._fd, self._pending) :]
        except BlockingIOError:
            self._loop.add_writer(self._fd, self._go_on)
            self._watched = True
            return
        except OSError:  # it does not want to read: its right (FACTS.md §6, `run_nostdin`)
            self.close()
            return
        if self.stays:
            self._unwatch()
        else:
            self.close()

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.remove_writer(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            self._unwatch()
            os.close(self._fd)
            self._fd = -1


class ProgramOutput:
    """What a program prints, up to a limit; `changed` is told when a stream has ended, `overflow` of one byte more."""

    room: int

    def __init__(
        self, child: Child, limit: int, on_output: OnOutput | None, changed: Callable[[], None],
        overflow: Callable[[], None],
    ) -> None:  # fmt: skip
        self.limit = self.room = limit
        self.on_output = on_output
        self.kept: dict[int, bytearray] = {child.stdout: bytearray(), child.stderr: bytearray()}
        self.open: dict[int, Stream] = {child.stdout: "stdout", child.stderr: "stderr"}
        self.wanted: bool = True
        self._changed, self._overflow = changed, overflow
        self._loop = asyncio.get_running_loop()
        self._listening: set[int] = set()

    def listen(self, *fds: int) -> None:
        for fd in {*(fds or self.open)} - self._listening:
            self._listening.add(fd)
            self._loop.add_reader(fd, self.read, fd)

    def read(self, fd: int) -> None:
        """Take what a stream has; at its end, look at the other one, too."""
        for _ in range(READS):
            try:
                data = os.read(fd, READ_SIZE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.close(fd)
                for other in tuple(self.open):
                    self.read(other)
                self._changed()
                return
            if self.wanted and not self._keep(fd, data):
                return

    def _keep(self, fd: int, data: bytes) -> bool:
        kept = data[: self.room]
        self.room -= len(kept)
        self.kept[fd] += kept
        if self.on_output is not None and kept:
            self.on_output(self.open[fd], kept)
        if len(kept) < len(data):
            self._overflow()
        return len(kept) == len(data)

    def forget(self) -> None:
        """Keep nothing of what was printed so far, nor count it."""
        self.room = self.limit
        for kept in self.kept.values():
            kept.clear()

    def discard(self) -> None:
        """Throw away what is still printed, so that a full pipe cannot keep the program from ending."""
        self.wanted = False
        self.listen()

    def close(self, *fds: int) -> None:
        for fd in fds or tuple(self.open):
            if self.open.pop(fd, None) is not None:
                if fd in self._listening:
                    self._loop.remove_reader(fd)
                os.close(fd)


class Process:
    """One started program, from its first byte of input to the result; `lasting` is called once it ended, or lasts."""

    def __init__(
        self, child: Child, group: Group, limit: int, on_output: OnOutput | None, lasting: Callable[[], None]
    ) -> None:
        self.child = child
        self.group = group
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.stdin: ProgramInput = ProgramInput(child.stdin, self.loop)
        self.printed: ProgramOutput = ProgramOutput(child, limit, on_output, self._look_around, self.stop)
        self.truncated: bool = False
        self.held: bool = False
        self.lasting = lasting
        self.detached: bool = False
        self.over: asyncio.Future[None] = self.loop.create_future()
        self.printed.listen(child.stdout)
        child.exit.add_done_callback(self._exited)
        if child.look is not None:
            self.loop.call_soon(child.look)
        self.timers: list[asyncio.TimerHandle] = [self.loop.call_later(SHORT, self._attend)]

    async def finish(self) -> ProcessResult | None:
        """Wait for the end and say how it was; None if `detach` was called: then `finish` is to be awaited again.

        Cancelling the task ends the program and all it started before this returns.
        """
        try:
            await self.over
            if self.truncated or self.held:
                await self._end()
        except asyncio.CancelledError:
            await self._end_whatever_happens()
            self._close()
            raise
        except GeneratorExit:  # closed from outside, where nothing can be awaited any more
            ending = self.loop.create_task(self._end())
            ending.add_done_callback(lambda _: self._close())
            _keep(ending)
            raise
        if self.detached:
            self._go_on()
            return None
        self._close()
        return _result(self)

    def detach(self) -> None:
        """Let the task that awaits `finish` go on; the program goes on too."""
        if not self.over.done():
            self.detached = True
            self.over.set_result(None)

    def _go_on(self) -> None:
        self._forget_timers()
        self._attend()
        self.detached, self.over = False, self.loop.create_future()
        if self.child.exit.done():
            self._exited(self.child.exit)

    def _look_around(self) -> None:
        """A stream has ended, so the rest probably has too: look at once instead of waiting for the loop to tell."""
        if self.printed.open:
            self._attend()
        elif self.child.look is not None:
            self.child.look()
        self._settle()

    def _attend(self) -> None:
        """It has not simply printed something and ended: have the loop tell of everything."""
        self.lasting()
        self.printed.listen()
        if self.child.look is not None:
            self.child.look()

    def _exited(self, _: asyncio.Future[int | None]) -> None:
        self.lasting()
        if self.printed.open and not self.over.done():
            self.timers.append(self.loop.call_later(HELD_PIPE, self._let_go))
        self._settle()

    def _let_go(self) -> None:
        """The program has ended, yet another one keeps its pipes open: stop listening."""
        self.held = True
        self.printed.close()
        self._settle()

    def _settle(self) -> None:
        if not self.printed.open and self.child.exit.done() and not self.over.done():
            self.over.set_result(None)

    def stop(self) -> None:
        """End it and all it has started: it has printed too much."""
        if not self.over.done():
            self.truncated = True
            self.over.set_result(None)

    async def _end(self) -> None:
        self._attend()
        self.stdin.close()
        self.printed.discard()
        await self.group.end(self.child.exit)

    async def _end_whatever_happens(self) -> None:
        """Ending takes a second at most; a second cancellation does not hurry it."""
        ending = self.loop.create_task(self._end())
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        ending.result()

    def _close(self) -> None:
        self._forget_timers()
        self.stdin.close()
        self.printed.close()

    def _forget_timers(self) -> None:
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


def _result(process: Process) -> ProcessResult:
    child = process.child
    code = child.exit.result() if child.exit.done() else None
    killed = code is not None and code < 0
    return ProcessResult(
        exit_code=None if code is None or killed else code,
        signal=-code if code is not None and killed else None,
        stdout=bytes(process.printed.kept[child.stdout]),
        stderr=bytes(process.printed.kept[child.stderr]) + child.last_words,
        truncated=process.truncated,
        held=process.held,
        warm=child.warm,
    )


_KEPT: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    """Hold on to a task that is not awaited, until it is done."""
    _KEPT.add(task)
    task.add_done_callback(_KEPT.discard)
