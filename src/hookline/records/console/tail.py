"""New records of audit logs as they are written, across rotations, without an index."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from hookline.errors import HooklineError
from hookline.records.console.log_segments import Segment, logs_in, read_at, segments
from hookline.records.console.records import EventRecord, decode

_RECENT = 1 << 16
_MOST_AT_ONCE = 4 << 20
_LOOK_FOR_LOGS_SECONDS = 2.0


class Tail:
    """Reads on where it was; at first it goes back a little, so that there is something to see.

    Folders are looked into again from time to time: a log that appears later is read from its start.
    """

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths = tuple(paths)
        self._done: dict[str, int] = {}
        self._logs: list[Path] = logs_in(self._paths)
        self._looked = time.monotonic()
        for log in self._logs:
            files = segments(log)
            self._done |= {segment.identity: segment.size for segment in files[:-1]}
            self._done |= {segment.identity: _recent(segment) for segment in files[-1:]}

    @property
    def logs(self) -> int:
        """How many logs there are."""
        return len(self._logs)

    def read(self) -> list[EventRecord]:
        """What was written since the last time."""
        if time.monotonic() - self._looked > _LOOK_FOR_LOGS_SECONDS:
            self._looked = time.monotonic()
            self._look()
        return [record for log in self._logs for segment in segments(log) for record in self._new(segment)]

    def _look(self) -> None:
        try:
            self._logs = logs_in(self._paths)
        except HooklineError:  # it went away; it may come back
            return

    def _new(self, segment: Segment) -> list[EventRecord]:
        start = self._done.get(segment.identity, 0)
        if segment.size < start:  # it was cut or replaced: from the start
            start = 0
        if segment.size == start:
            return []
        try:
            data = read_at(segment.path, start, min(segment.size - start, _MOST_AT_ONCE))
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        if not end and len(data) == _MOST_AT_ONCE:  # no record is as long as this
            end = len(data)
        self._done[segment.identity] = start + end
        return [record for line in data[:end].splitlines() if (record := decode(line)) is not None]


def _recent(segment: Segment) -> int:
    """Where the last few records of a file begin."""
    start = max(segment.size - _RECENT, 0)
    if not start:
        return 0
    return start + read_at(segment.path, start, _RECENT).find(b"\n") + 1
