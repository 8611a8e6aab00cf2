"""When work in another process is due, as the two of them know it: one writes it, the other waits no longer.

A hook that holds the interpreter (`while True: pass`, a regular expression that never ends) holds every timer in its
process, too. So the time is kept where a process that runs no hooks can read it.
"""

from __future__ import annotations

import mmap
import struct
import time

_SECONDS = struct.Struct("d")
_NEVER = 0.0


class SharedDeadline:
    """A moment in memory that is shared with every later fork; at first there is none."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, _SECONDS.size)

    def within(self, seconds: float | None) -> None:
        """It is due that many seconds from now, or never."""
        moment = _NEVER if seconds is None or seconds == float("inf") else time.monotonic() + seconds
        _SECONDS.pack_into(self._shared, 0, moment)

    @property
    def passed(self) -> bool:
        """Whether it should have been done by now."""
        moment: float = _SECONDS.unpack_from(self._shared, 0)[0]
        return moment != _NEVER and time.monotonic() > moment
