"""Signals without the module `signal`, whose enumerations take longer to import than everything else here."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` itself is made of

HUP, INT, QUIT, KILL, PIPE, TERM, CHLD, XFSZ = 1, 2, 3, 9, 13, 15, 17, 25


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
    import os

    try:
        os.kill(pid, number)
    except OSError:
        return
