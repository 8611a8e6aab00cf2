"""What a whole line may use: time, processor time, memory, processes. The supervisor adds up and ends it."""

from __future__ import annotations

import os
import time

from hookline.sandbox import kernel, signals

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_CPU, _DATA = 0, 2
"""RLIMIT_CPU and RLIMIT_DATA: what one process alone may use is held by the kernel, between two looks of ours."""
_MOMENT = 0.1
_TIMES = slice(11, 15)
"""Where a process's facts have its processor time, and that of its children that have ended."""
_OWN = (b"RssAnon:", b"RssShmem:")


def parse(name: str, text: str) -> float:
    """A limit as it is written: `90`, `1.5`, `512M`; ValueError if it is not a number above 0."""
    unit = UNITS.get(text[-1:].upper(), 0) if name == "memory" else 0
    number = float(text[:-1] if unit else text) * (unit or 1)
    if not 0 < number < 1 << 62:
        raise ValueError(text)
    return number


class UsageLimits:
    """The limits of one line, which begins now."""

    def __init__(self, limits: dict[str, float], command: int) -> None:
        self._limits, self._begun = limits, time.monotonic()
        self._adds_up, self._next = "cpu" in limits or "memory" in limits, self._begun
        for name, resource in (("cpu", _CPU), ("memory", _DATA)):
            if name in limits:
                kernel.limit(command, resource, max(1, int(limits[name])))

    @property
    def patience(self) -> int | None:
        """Milliseconds until the next look; None for no look at all."""
        due = [self._begun + self._limits["seconds"]] if "seconds" in self._limits else []
        due += [self._next] if self._adds_up else []
        return max(0, int((min(due) - time.monotonic()) * 1000) + 1) if due else None

    def exceeded(self) -> str:
        """Which limit the line has reached, with its flag; empty if none."""
        now = time.monotonic()
        used = {"seconds": now - self._begun}
        if self._adds_up and now >= self._next:
            used |= _usage()
            self._next = time.monotonic() + _MOMENT
        reached = (name for name, most in self._limits.items() if used.get(name, 0) >= most)
        return next((f"{_WHAT[name].format(self._limits[name])} (--{name})" for name in reached), "")


def _usage() -> dict[str, float]:
    """What the line's processes use, and what those that have ended have used."""
    ended = os.times()
    ticks = kilobytes = 0
    for pid in signals.descendants(os.getpid()):
        ticks += sum(map(int, signals.facts(str(pid))[_TIMES]))
        kilobytes += sum(int(line.split()[1]) for line in _status(pid) if line.startswith(_OWN))
    seconds = ticks / os.sysconf("SC_CLK_TCK") + ended.children_user + ended.children_system
    return {"cpu": seconds, "memory": kilobytes << 10}


def _status(pid: int) -> list[bytes]:
    try:
        return kernel.content(f"/proc/{pid}/status").splitlines()
    except OSError:
        return []


_WHAT = {
    "cpu": "it has used {:g} seconds of processor time",
    "memory": "it has used {:.0f} bytes of memory",
    "seconds": "it has taken {:g} seconds",
}
