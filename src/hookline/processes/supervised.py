"""Work that may end its own process, watched by one that stays.

A hook is other people's code: it may call `os._exit(0)`, crash in C, or be killed for its memory. Whoever asked would
read the silence as "nothing to say". So a child process does the work, and the parent, which runs nothing but this
module, says what has to be said when the child ends before its work is done.

The parent owns Ctrl-C: whichever signal it gets, the child gets one TERM, and cleans up after its hooks once.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn

from msgspec import Struct

from hookline.errors import HooklineError
from hookline.processes.descriptors import disconnect, drop, end_with, is_terminal
from hookline.processes.shared_deadline import SharedDeadline

Work = Callable[[int, int], int]
"""What a child does: it may read lines from the first descriptor and write answers to the second; its exit code."""

_CHUNK = 65536
_POLL_SECONDS = 0.5  # seconds between two looks at the time while a child works
_TAIL = 8192
_DONE = b"\0"
"""Begins the last thing a child writes: its exit code follows."""
_TERMINATED = 128 + signal.SIGTERM


class ChildExit(Struct, frozen=True):
    """How a child ended before its work did: its exit code or its signal, and the end of what it wrote to stderr."""

    exit_code: int | None
    signal: int | None
    stderr: str = ""
    finished: bool = False
    """Whether it had said that it was done: then it ended on purpose, and its last words say why."""
    overdue: bool = False
    """Whether it was ended because its time was over."""

    def __str__(self) -> str:
        if self.overdue:
            return "a hook held the process that runs the hooks past its time limit"
        ended = f"exit code {self.exit_code}" if self.signal is None else f"signal {self.signal}"
        return f"a hook ended the process that runs the hooks ({ended})"

    @property
    def reason(self) -> str:
        """Why that is a no; exit code 2 says so on stderr, as it does in a command hook."""
        told = self.stderr.strip()
        return told if (self.exit_code == 2 or self.finished) and told else str(self)


def supervise(work: Callable[[], int], lost: Callable[[ChildExit], int], program: str, due: SharedDeadline) -> int:
    """The exit code of `work`, done in a child; or of `lost`, when the child did not get to the end of it.

    A child that is not done when it says that it is `due` is ended. Where there is no `fork`, the work is done here.
    """
    if not hasattr(os, "fork"):
        return work()
    child = _Child(lambda source, sink: work(), program, due)
    with _ended_with_us(lambda: child):
        while child.hear(None):
            pass
        death = child.wait()
    return lost(death) if child.code is None else child.code


class Lines:
    """Lines that a child answers, one after the other.

    A line whose child died, or did not answer when it was `due`, is answered by `refuse`, the next one by a fresh
    child. A line longer than `longest` bytes is cut one byte above that, so that whoever reads it knows.
    """

    def __init__(
        self,
        work: Work,
        refuse: Callable[[bytes, ChildExit], bytes],
        program: str,
        *,
        source: int,
        longest: int,
        due: SharedDeadline,
    ) -> None:
        self._work, self._refuse, self._program, self._due = work, refuse, program, due
        self._source, self._longest = source, longest
        self._read = bytearray()
        self._ended = False
        self._worst = 0
        self._child: _Child | None = None

    def answer_all(self, sink: BinaryIO) -> int:
        """Answer until the lines end; the child's exit code, or 1 if one died.

        Lines for a child that says that it cannot go on are refused in its words; a terminal is not read any more.
        """
        self._child = _Child(self._work, self._program, self._due)
        with _ended_with_us(lambda: self._child):
            while (line := self._next()) is not None:
                sink.write(self._answer(line) + b"\n")
                sink.flush()
            return self._finish()

    def _next(self) -> bytes | None:
        """The next line that holds something."""
        while not self._through():
            line, newline, rest = self._read.partition(b"\n")
            if newline or (self._ended and line):
                self._read = rest
                if line.strip():
                    return bytes(line)
            elif self._ended:
                return None
            else:
                self._listen()
        return None

    def _through(self) -> bool:
        """Whether the child has finished on purpose, and nobody waits for more answers."""
        code = None if self._child is None else self._child.code
        return code == 0 or (code is not None and is_terminal(self._source))

    def _listen(self) -> None:
        """Wait for more to answer, and hear meanwhile what the child has to say."""
        child = self._child
        ready, _, _ = select.select([self._source, *(child.descriptors if child else ())], [], [])
        if child is not None and not child.hear(ready) and child.code is None:
            self._reap_child(child)
        if self._source in ready:
            data = os.read(self._source, _CHUNK)
            self._ended = not data
            self._read += data
            if b"\n" not in data:
                del self._read[self._longest + 1 :]

    def _answer(self, line: bytes) -> bytes:
        child = self._child = self._child or _Child(self._work, self._program, self._due)
        child.say(line)
        answer = child.next_line()
        return self._refuse(line, self._reap_child(child)) if answer is None else answer

    def _reap_child(self, child: _Child) -> ChildExit:
        self._worst = 1
        if child.code is None:
            self._child = None
        return child.wait()

    def _finish(self) -> int:
        child = self._child
        if child is None:
            return self._worst
        child.hang_up()
        while child.hear(None):
            pass
        child.wait()
        return max(self._worst, 1 if child.code is None else child.code)


# -- the child ---------------------------------------------------------------------------------------------------


class _Child:
    """A fork of this process that works; what it answers and what it writes to stderr pass through here."""

    def __init__(self, work: Work, program: str, due: SharedDeadline) -> None:
        source, self._source = os.pipe()
        self._answers, sink = os.pipe()
        self._errors, errors = (-1, -1) if is_terminal(2) else os.pipe()
        lifeline, self._lifeline = os.pipe()
        self._heard = bytearray()
        self._stderr = bytearray()
        self._ended: ChildExit | None = None
        self._due, self._overdue = due, False
        due.within(None)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            drop(self._source, self._answers, self._errors, self._lifeline)
            end_with(lifeline)
            _work(work, source, sink, errors, program)
        drop(source, sink, errors, lifeline)
        self._life = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1

    @property
    def code(self) -> int | None:
        """The exit code of work that was done, as the child announced it."""
        return self._heard[-1] if self._heard[-2:-1] == _DONE else None

    def say(self, line: bytes) -> None:
        """Send a line; one that is dead does not hear it."""
        if self._source < 0:
            return
        with suppress(BrokenPipeError):
            view = memoryview(line + b"\n")
            while view:
                view = view[os.write(self._source, view) :]

    def hang_up(self) -> None:
        """There are no more lines."""
        self._source = drop(self._source)

    def next_line(self) -> bytes | None:
        """The next answer, or none if the child ended."""
        while b"\n" not in self._heard:
            if not self.hear(None):
                return None
        line, _, self._heard = self._heard.partition(b"\n")
        return bytes(line)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What to wait for to hear from it."""
        return tuple(fd for fd in (self._answers, self._errors, self._life) if fd >= 0)

    def hear(self, ready: Iterable[int] | None) -> bool:
        """Take down what it says (`None`: once it says something); false when it is done, or dead."""
        if not self.descriptors:
            return False
        for fd in self._ready() if ready is None else ready:
            if fd == self._answers:
                self._heard += self._taken(fd)
            elif fd == self._errors:
                self._relay(self._taken(fd))
        if self._answers >= 0 and self.code is None and not self._dead():
            return True
        self._drain()
        return False

    def _ready(self) -> list[int]:
        """What it has to say, once there is something; it is ended when its time is over."""
        while True:
            ready = select.select(self.descriptors, [], [], _POLL_SECONDS)[0]
            if ready or self._overdue:
                return ready
            if self._due.passed:
                self._overdue = True
                os.kill(self.pid, signal.SIGKILL)

    def _dead(self) -> bool:
        """Whether it has ended, although something it started may hold its descriptors open."""
        return self._life >= 0 and bool(select.select([self._life], [], [], 0)[0])

    def _taken(self, fd: int) -> bytes:
        data = os.read(fd, _CHUNK)
        if not data and fd == self._answers:
            self._answers = drop(fd)
        elif not data:
            self._errors = drop(fd)
        return data

    def _drain(self) -> None:
        """Take down what it has written before it ended."""
        for fd in (self._answers, self._errors):
            while fd >= 0 and select.select([fd], [], [], 0)[0]:
                data = self._taken(fd)
                if not data:
                    break
                if fd == self._answers:
                    self._heard += data
                else:
                    self._relay(data)

    def _relay(self, data: bytes) -> None:
        self._stderr += data
        del self._stderr[:-_TAIL]
        with suppress(OSError):
            os.write(2, data)

    def wait(self) -> ChildExit:
        """How it ended."""
        if self._ended is None:
            _, status = os.waitpid(self.pid, 0)
            self._drain()
            drop(*self.descriptors, self._lifeline)
            self.hang_up()
            self._answers = self._errors = self._life = self._lifeline = -1
            code = os.waitstatus_to_exitcode(status)
            told = self._stderr.decode("utf-8", "replace")
            finished = self.code is not None
            self._ended = ChildExit(
                code if code >= 0 else None, None if code >= 0 else -code, told, finished=finished,
                overdue=self._overdue,
            )  # fmt: skip
        return self._ended

    def end(self) -> None:
        """Have it clean up and leave; a second Ctrl-C does not wait for that."""
        if self._ended is not None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        try:
            while self.hear(None):
                pass
        except BaseException:
            os.kill(self.pid, signal.SIGKILL)
            raise
        finally:
            self.wait()


def _work(work: Work, source: int, sink: int, errors: int, program: str) -> NoReturn:
    """The child's whole life. It leaves by `os._exit`: what the parent was in the middle of is not its business."""
    code = 1
    try:
        if errors >= 0:
            os.dup2(errors, 2)
            os.close(errors)
        signal.signal(signal.SIGINT, lambda number, frame: None)  # the parent's, which sends TERM
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.register_at_fork(after_in_child=lambda: disconnect(source, sink))
        code = _code_of(lambda: work(source, sink), program)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # a hook may have put anything in their place
                stream.flush()
        if code != _TERMINATED:  # that work is not done, whoever sent the TERM: us, who know, or a hook
            os.write(sink, _DONE + bytes([code]))
        atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing does in its forks; there is no public name
    finally:
        os._exit(code)


def _code_of(work: Callable[[], int], program: str) -> int:
    this = os.getpid()
    try:
        return work() & 0xFF
    except HooklineError as error:
        sys.stderr.write(f"{program}: {error}\n")
    except SystemExit as left:
        if isinstance(left.code, str):
            sys.stderr.write(f"{left.code}\n")
        return left.code & 0xFF if isinstance(left.code, int) else 0 if left.code is None else 1
    except BrokenPipeError:
        return 141
    except BaseException:  # noqa: BLE001 - shown as Python would
        if os.getpid() == this:  # and not what becomes of a fork that a hook let go on here
            traceback.print_exc()
    return 1


# -- signals -----------------------------------------------------------------------------------------------------


@contextmanager
def _ended_with_us(child: Callable[[], _Child | None]) -> Iterator[None]:
    """Whatever ends us ends the child first."""
    before = _handle(signal.SIGTERM), _handle(signal.SIGHUP)
    try:
        yield
    except BaseException:
        running = child()
        if running is not None:
            running.end()
        raise
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGHUP), before, strict=True):
            if handler is not None:
                signal.signal(number, handler)


def _handle(number: signal.Signals) -> Any:
    """Make a signal an exit like Ctrl-C is; what it was before, or none if that cannot be done here."""

    def leave(received: int, frame: Any) -> NoReturn:
        raise SystemExit(128 + received)

    try:
        return signal.signal(number, leave)
    except ValueError:  # not the main thread
        return None
