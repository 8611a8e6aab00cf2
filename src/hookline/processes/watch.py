"""Work in a child process that may hang, crash, end the program or hold the interpreter's lock, and how it ended.

A hook is other people's code: it may call `os._exit(0)`, crash in C, or be killed for its memory. A host would read the
silence as "nothing to say". So a child does the work, and the parent always learns what became of it, in time.
"""

from __future__ import annotations

import atexit
import mmap
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from pathlib import Path
from types import FrameType
from typing import NoReturn

from msgspec import Struct

from hookline.display import behind_bar
from hookline.errors import HooklineError

Work = Callable[[int, int], int]
"""What a child does: it may read lines from the first descriptor and write answers to the second; its exit code."""

_CHUNK = 65536
_POLL_SECONDS = 0.5  # seconds between two looks at the time while a child works
_LEAVING = 2.0  # seconds; on a busy machine a process that has closed its files waits for its turn to be gone
_TAIL = 8192
_DONE = b"\0"  # begins the last thing a child writes: its exit code follows
_TERMINATED = 128 + signal.SIGTERM
_PACKAGE = str(Path(__file__).parents[1]) + os.sep


class SharedDeadline:
    """When work is due, in memory that is shared with every later fork: one process writes it, the other reads it.

    A hook that holds the interpreter (`while True: pass`, a regular expression that never ends) holds every timer in
    its process, too. So the time is kept where a process that runs no hooks can read it. At first there is none.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._moment = memoryview(mmap.mmap(-1, 8)).cast("d")
        self.within(seconds)

    def within(self, seconds: float | None) -> None:
        """It is due that many seconds from now, or never."""
        self._moment[0] = time.monotonic() + (inf if seconds is None else seconds)

    @property
    def left(self) -> float:
        return self._moment[0] - time.monotonic()


class ChildExit(Struct, frozen=True):
    """How a child ended before its work did: its exit code or its signal, and the end of what it wrote to stderr."""

    exit_code: int | None
    signal: int | None
    stderr: str = ""
    finished: bool = False  # whether it had said that it was done: then it ended on purpose, and its last words say why
    overdue: bool = False  # whether it was ended because its time was over

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


class NoAnswer(Exception):
    """The work ended, or its time was over, before it had answered."""


def answer_in_time(work: Callable[[Callable[[bytes], None]], None], until: float) -> bytes:
    """The line that `work` hands to the function it is given, at `until` on the monotonic clock at the latest.

    The work gets no terminal and none of this process's streams, so that nothing it leaves behind holds a reader of
    theirs up. After its answer it may go on by itself; without one it is ended, with everything it has started.
    """

    def answering(source: int, sink: int) -> int:
        work(lambda answer: _write(sink, answer + b"\n"))
        return 0

    child = Watched(answering, "", SharedDeadline(until - time.monotonic()), alone=True)
    answer = child.next_line()
    if answer is None:
        raise NoAnswer(child.end_silent())
    child.forget()
    return answer


class Watched:
    """A fork of this process that works; what it answers and what it writes to stderr pass through here.

    It ends with this process and shares its streams, unless it works `alone`.
    """

    def __init__(self, work: Work, program: str, due: SharedDeadline, *, alone: bool = False) -> None:
        source, self._source = os.pipe()
        self._answers, sink = os.pipe()
        self._errors, errors = (-1, -1) if alone or is_terminal(2) else os.pipe()
        lifeline, self._lifeline = os.pipe()
        self._heard = bytearray()
        self._stderr = bytearray()
        self._status: int | None = None
        self._ended: ChildExit | None = None
        self._due, self._overdue = due, False
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid: int = os.fork()
        if self.pid == 0:
            drop(self._source, self._answers, self._errors, self._lifeline)
            if alone:
                _leave_terminal()
            else:
                end_with(lifeline)
            _work(work, source, sink, errors, program)
        drop(source, sink, errors, lifeline)
        self._life = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1

    @property
    def code(self) -> int | None:
        """The exit code of work that was done, as the child announced it."""
        return self._heard[-1] if self._heard[-2:-1] == _DONE else None

    def say(self, line: bytes) -> None:
        with suppress(BrokenPipeError):
            if self._source >= 0:
                _write(self._source, line + b"\n")

    def hang_up(self) -> None:
        self._source = drop(self._source)

    def next_line(self) -> bytes | None:
        while b"\n" not in self._heard:
            if not self.hear(None):
                break
        line, newline, rest = self._heard.partition(b"\n")
        if not newline:
            return None
        self._heard = rest
        return bytes(line)

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(fd for fd in (self._answers, self._errors, self._life) if fd >= 0)

    def hear(self, ready: Iterable[int] | None) -> bool:
        """Take down what it says (`None`: once it says something); false when it is done, or dead."""
        for fd in self._ready() if ready is None else ready:
            self._take(fd)
        if self._answers >= 0 and self.code is None and not self._dead():
            return True
        for fd in (self._answers, self._errors):  # what it has written before it ended
            while fd >= 0 and select.select([fd], [], [], 0)[0] and self._take(fd):
                pass
        return False

    def _ready(self) -> list[int]:
        """What it has to say, once there is something; it is ended when its time is over."""
        while self.descriptors and not self._overdue:
            left = self._due.left
            ready = select.select(self.descriptors, [], [], max(0.0, min(left, _POLL_SECONDS)))[0]
            if ready:
                return ready
            if left <= 0:
                self._overdue = True
                os.kill(self.pid, signal.SIGKILL)
            elif self._life < 0 and self._reap(os.WNOHANG):
                break
        return []

    def _dead(self) -> bool:
        """Whether it has ended, although something it started may hold its descriptors open."""
        return self._overdue or (self._life >= 0 and bool(select.select([self._life], [], [], 0)[0]))

    def _reap(self, options: int) -> bool:
        """Whether it has ended, and is cleared away; 255 where another part of the program was told how."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                pid, status = self.pid, 255 << 8
            self._status = status if pid else None
        return self._status is not None

    def _take(self, fd: int) -> bool:
        if fd not in (self._answers, self._errors):
            return False
        data = os.read(fd, _CHUNK)
        if fd == self._answers:
            self._heard += data
            self._answers = fd if data else drop(fd)
        else:
            self._stderr += data
            del self._stderr[:-_TAIL]
            with suppress(OSError):
                os.write(2, data)
            self._errors = fd if data else drop(fd)
        return bool(data)

    def wait(self) -> ChildExit:
        if self._ended is None:
            self._reap(0)
            self.hear(())
            self.forget()
            code = os.waitstatus_to_exitcode(self._status or 0)
            told = self._stderr.decode("utf-8", "replace")
            exit_code, number = (code, None) if code >= 0 else (None, -code)
            self._ended = ChildExit(exit_code, number, told, finished=self.code is not None, overdue=self._overdue)
        return self._ended

    def forget(self) -> None:
        drop(*self.descriptors, self._lifeline)
        self.hang_up()
        self._answers = self._errors = self._life = self._lifeline = -1

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

    def end_silent(self) -> str:
        """End it and all it has started, but for what left its process group; why it has not answered."""
        until = time.monotonic() + min(_LEAVING, self._due.left)  # for one that has closed its pipe and is leaving
        while not self._overdue and not self._reap(os.WNOHANG) and time.monotonic() < until:
            time.sleep(0.005)
        left = self._status is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if not left:  # it may not have made its group yet
            os.kill(self.pid, signal.SIGKILL)
        ended = self.wait()
        if ended.overdue:
            return "gave no answer in time"
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {signal.Signals(ended.signal).name}"
        return f"ended without an answer ({how})" if left else "closed the pipe without an answer"


def _leave_terminal() -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)


def _work(work: Work, source: int, sink: int, errors: int, program: str) -> NoReturn:
    """The child's whole life. It leaves by `os._exit`: what the parent was in the middle of is not its business."""
    code = 1
    try:
        if errors >= 0:
            os.dup2(errors, 2)
            os.close(errors)
        signal.signal(signal.SIGINT, lambda number, frame: None)  # the parent's, which sends TERM
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.register_at_fork(before=_note_loop, after_in_child=lambda: _disconnect(source, sink))
        code = _code_of(lambda: work(source, sink), program)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # a hook may have put anything in their place
                stream.flush()
        if code != _TERMINATED:  # that work is not done, be the TERM ours, which we know of, or a hook's
            with suppress(OSError):  # a parent that has its answer does not listen any more
                os.write(sink, _DONE + bytes([code]))
        atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing does in its forks; there is no public name
    finally:
        os._exit(code)


def _code_of(work: Callable[[], int], program: str) -> int:
    this = os.getpid()
    try:
        return work() & 0xFF
    except HooklineError as error:
        sys.stderr.write(f"{program}: {behind_bar(str(error))}\n")
    except SystemExit as left:
        if isinstance(left.code, str):
            sys.stderr.write(f"{left.code}\n")
        return left.code & 0xFF if isinstance(left.code, int) else 0 if left.code is None else 1
    except BrokenPipeError:
        return 141
    except BaseException:  # noqa: BLE001 - shown as Python would
        if os.getpid() == this:  # and not what becomes of a fork that a hook let go on here
            import traceback

            traceback.print_exc()
    return 1


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def drop(*descriptors: int) -> int:
    """Close them; -1, which stands for a descriptor that is closed."""
    for fd in descriptors:
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)
    return -1


_forking = threading.local()


def _note_loop() -> None:
    """Remember the event loop that this thread forks in: in the fork, asyncio no longer tells."""
    module = sys.modules.get("asyncio")
    _forking.loop = module._get_running_loop() if module else None  # noqa: SLF001 - `get_running_loop` raises instead


def _disconnect(*descriptors: int) -> None:
    """A process that a hook has forked off takes no lines, gives no answers, and ends with the hook's own code.

    Beyond it nothing can go on: a lock may be held by a thread, and a loop be woken, that only the parent has.
    """
    if _forking.loop is not None:  # for what runs in a task of its own
        _forking.loop.call_soon(os._exit, 0)
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the one that forked, beneath two of ours
    outermost = None
    while frame is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
        outermost, frame = frame, frame.f_back
    if outermost is not None:
        sys.setprofile(lambda left, event, value: os._exit(0) if left is outermost and event == "return" else None)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in descriptors:
        os.dup2(nothing, fd, inheritable=False)
    os.close(nothing)
    with suppress(OSError):  # where there is no /proc, an event loop is not shared with a fork either
        for path in list(Path("/proc/self/fd").iterdir()):
            _unshare_poll(path)


def _unshare_poll(path: Path) -> None:
    """An epoll that a fork inherits is its parent's: what it unregisters there its parent never hears of again."""
    with suppress(OSError):
        if str(path.readlink()) == "anon_inode:[eventpoll]":
            fresh = select.epoll()
            os.dup2(fresh.fileno(), int(path.name), inheritable=False)
            fresh.close()


def end_with(lifeline: int) -> None:
    """End this process as soon as the other end of a pipe is closed: the process that watches it was killed.

    The kernel sends the signal, whatever a hook is busy with. Where it cannot, the process ends with its work.
    """
    import fcntl

    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    if select.select([lifeline], [], [], 0)[0]:
        os.kill(os.getpid(), signal.SIGKILL)


def is_terminal(fd: int) -> bool:
    """Whether it is a terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False
