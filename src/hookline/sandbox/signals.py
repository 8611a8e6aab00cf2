"""Signals without the module `signal`, whose enumerations take longer to import than everything else here."""

import _signal  # type: ignore[import-not-found]  # what `signal` itself is made of
import os
import time

_MOMENT = 0.002
HUP, INT, QUIT, KILL, PIPE, TERM, XFSZ = 1, 2, 3, 9, 13, 15, 25


apart: set[int] = set()
"""Processes of ours that are not the line's, although they come from its supervisor: the broker."""


def ignore(*numbers: int) -> None:
    """Do nothing on these."""
    for number in numbers:
        _signal.signal(number, _signal.SIG_IGN)


def default(*numbers: int) -> None:
    """Do on these what a process does that never asked."""
    for number in numbers:
        _signal.signal(number, _signal.SIG_DFL)


def hand_on(pid: int, *numbers: int) -> None:
    """Send these to another process."""
    for number in numbers:
        _signal.signal(number, lambda number, _frame: send(pid, number))


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def end_children() -> None:
    """Kill every child, and every orphan that thereby becomes one, until there is none.

    An orphan becomes a child a moment after its parent has ended: so the children are listed again and again.
    """
    while True:
        for child in _children():
            send(child, KILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(_MOMENT)


def _children() -> list[int]:
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return [child for child, its_parent in _parents().items() if its_parent == me]


def descendants(pid: int) -> set[int]:
    """Every process that comes from another one, those apart from the line aside."""
    found: set[int] = set()
    parents, grown = _parents(), {pid}
    while grown:
        grown = {child for child, its_parent in parents.items() if its_parent in grown} - found - apart
        found |= grown
    return found


def _parents() -> dict[int, int]:
    return {int(name): parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}


def parent(pid: int) -> int:
    """The parent of a process; 0 if there is no such process."""
    return int(facts(pid)[1])


def started(pid: int) -> str:
    """When a process was started, by which it is told from another one of the same number."""
    return facts(pid)[19]


def facts(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; zeros if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # whose name may be any bytes
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return ["0"] * 50
