"""Work in a process of its own, with a deadline: whoever waits for it is never left without a word.

The work may hang, crash, end the program, hold the interpreter's lock or be killed: the process that asked goes on.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress

_HEAD = 20
_POLL_SECONDS = 0.1  # seconds; a process forked by the work may hold the pipe open after the work itself has died
_LEAVING = 2.0  # seconds; on a busy machine a process that has closed its files waits for its turn to be gone


class NoAnswer(Exception):
    """The work ended, or its time was over, before it had answered."""


def answer_in_time(work: Callable[[Callable[[bytes], None]], None], until: float) -> bytes:
    """What `work` hands to the function it is given, at `until` on the monotonic clock at the latest.

    The work gets no terminal and none of this process's streams, so that nothing it leaves behind holds a reader of
    theirs up. After its answer it may go on by itself; without one it is ended, with everything it has started.
    """
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        _work_and_leave(work, outlet)
    os.close(outlet)
    try:
        return _receive(inlet, child, until)
    except NoAnswer:
        _end(child)
        raise
    finally:
        os.close(inlet)


def _work_and_leave(work: Callable[[Callable[[bytes], None]], None], outlet: int) -> None:
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)

        def deliver(answer: bytes) -> None:
            data = b"%*d" % (_HEAD, len(answer)) + answer
            while data:
                data = data[os.write(outlet, data) :]
            os.close(outlet)

        work(deliver)
        code = 0
    finally:
        os._exit(code)


def _receive(inlet: int, child: int, until: float) -> bytes:
    data = b""
    while len(data) < _HEAD or len(data) < _HEAD + int(data[:_HEAD]):
        left = until - time.monotonic()
        if left <= 0:
            raise NoAnswer("gave no answer in time")
        if select.select([inlet], [], [], min(left, _POLL_SECONDS))[0]:
            chunk = os.read(inlet, 1 << 16)
            if not chunk:
                raise NoAnswer(_ending(child, until))
            data += chunk
        elif (ended := _ended(child)) and not select.select([inlet], [], [], 0)[0]:
            raise NoAnswer(ended)
    return data[_HEAD:]


def _ending(child: int, until: float) -> str:
    """How a process ended that has closed its end of the pipe; it may take a moment more to be gone."""
    until = min(until, time.monotonic() + _LEAVING)
    while not (told := _ended(child)):
        if time.monotonic() >= until:
            return "closed the pipe without an answer"
        time.sleep(0.005)
    return told


def _ended(child: int) -> str:
    with suppress(ChildProcessError):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
            return f"ended without an answer ({how})"
        return ""
    return "ended without an answer"


def _end(child: int) -> None:
    """The work and all it has started; what left its process group is not followed."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
