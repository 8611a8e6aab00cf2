"""One timer of the event loop for all hooks that wait on it: a timer for each costs more than many of them take.

It is set for the first that is due. Most answer long before that, so it rings in vain, and is set again only if
one still waits. It knows nothing of its loop, which may go when its own people let it go.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from math import inf
from typing import Protocol
from weakref import WeakKeyDictionary


class TimerEntry(Protocol):
    """One that wants to be told when a time has come."""

    def expire(self) -> None:
        """The time has come; it may be set again."""


class Alarm:
    """Who waits on one loop, and until when."""

    def __init__(self) -> None:
        self._due: dict[TimerEntry, float] = {}
        self._rings = inf
        self._context = Context()  # the timer outlives the hook that had it set, whose own context must not

    def set(self, whom: TimerEntry, when: float) -> None:
        """Tell `whom` at `when`, in the loop's time; what was set for it before no longer counts."""
        self._due[whom] = when
        if when < self._rings:
            self._ring_at(when)

    def clear(self, whom: TimerEntry) -> None:
        """It need not be told any more."""
        self._due.pop(whom, None)

    def _ring_at(self, when: float) -> None:
        self._rings = when
        asyncio.get_running_loop().call_at(when, self._fire_due, when, context=self._context)

    def _fire_due(self, when: float) -> None:
        if when != self._rings:  # an earlier one was set after this
            return
        self._rings = inf
        now = max(when, asyncio.get_running_loop().time())
        for whom in [whom for whom, due in self._due.items() if due <= now]:
            del self._due[whom]
            whom.expire()
        first = min(self._due.values(), default=inf)
        if first < self._rings:
            self._ring_at(first)


_alarms: WeakKeyDictionary[asyncio.AbstractEventLoop, Alarm] = WeakKeyDictionary()


def alarm_of(loop: asyncio.AbstractEventLoop) -> Alarm:
    """The alarm of everybody who waits on `loop`."""
    alarm = _alarms.get(loop)
    if alarm is None:
        alarm = _alarms[loop] = Alarm()
    return alarm
