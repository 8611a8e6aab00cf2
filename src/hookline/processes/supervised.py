"""Commands whose hooks run in a child: a parent, which runs nothing but this, answers when the child cannot.

The parent owns Ctrl-C: whichever signal it gets, the child gets one TERM, and cleans up after its hooks once.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

from msgspec import Struct, field

from hookline.processes.watch import ChildExit, SharedDeadline, Watched, Work, is_terminal

__all__ = ["ChildExit", "Lines", "SharedDeadline", "supervise"]

_CHUNK = 65536


def supervise(work: Callable[[], int], lost: Callable[[ChildExit], int], program: str, due: SharedDeadline) -> int:
    """The exit code of `work`, done in a child; or of `lost`, when the child did not get to the end of it.

    A child that is not done when it says that it is `due` is ended. Where there is no `fork`, the work is done here.
    """
    if not hasattr(os, "fork"):
        return work()
    due.within(None)
    child = Watched(lambda source, sink: work(), program, due)
    with _ended_with_us(lambda: child):
        while child.hear(None):
            pass
        death = child.wait()
    return lost(death) if child.code is None else child.code


class Lines(Struct):
    """Lines that a child answers, one after the other.

    A line whose child died, or did not answer when it was `due`, is answered by `refuse`, the next one by a fresh
    child. A line longer than `longest` bytes is cut one byte above that, so that its reader knows.
    """

    work: Work
    refuse: Callable[[bytes, ChildExit], bytes]
    program: str
    source: int
    longest: int
    due: SharedDeadline
    _read: bytearray = field(default_factory=bytearray)
    _ended: bool = False
    _worst: int = 0
    _child: Watched | None = None

    def answer_all(self, sink: BinaryIO) -> int:
        """Answer until the lines end; the child's exit code, or 1 if one died.

        Lines for a child that says that it cannot go on are refused in its words; a terminal is not read any more.
        """
        self._child = self._fork()
        with _ended_with_us(lambda: self._child):
            while (line := self._next()) is not None:
                sink.write(self._answer(line) + b"\n")
                sink.flush()
            return self._finish()

    def _fork(self) -> Watched:
        self.due.within(None)
        return Watched(self.work, self.program, self.due)

    def _next(self) -> bytes | None:
        while True:
            code = None if self._child is None else self._child.code
            if code == 0 or (code is not None and is_terminal(self.source)):
                return None  # the child has finished on purpose: no more answers are waited for
            line, newline, rest = self._read.partition(b"\n")
            if newline or (self._ended and line):
                self._read = rest
                if line.strip():
                    return bytes(line)
            elif self._ended:
                return None
            else:
                self._listen()

    def _listen(self) -> None:
        """Wait for more to answer, and hear meanwhile what the child has to say."""
        child = self._child
        ready, _, _ = select.select([self.source, *(child.descriptors if child else ())], [], [])
        if child is not None and not child.hear(ready) and child.code is None:
            self._reap_child(child)
        if self.source in ready:
            data = os.read(self.source, _CHUNK)
            self._ended = not data
            self._read += data
            if b"\n" not in data:
                del self._read[self.longest + 1 :]

    def _answer(self, line: bytes) -> bytes:
        child = self._child = self._child or self._fork()
        child.say(line)
        answer = child.next_line()
        return self.refuse(line, self._reap_child(child)) if answer is None else answer

    def _reap_child(self, child: Watched) -> ChildExit:
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


@contextmanager
def _ended_with_us(child: Callable[[], Watched | None]) -> Iterator[None]:
    """Whatever ends us ends the child first; so do these signals, where this is the thread that can handle them."""

    def leave(received: int, frame: Any) -> NoReturn:
        raise SystemExit(128 + received)

    handled = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, leave) for number in handled}
    try:
        yield
    except BaseException:
        running = child()
        if running is not None:
            running.end()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
