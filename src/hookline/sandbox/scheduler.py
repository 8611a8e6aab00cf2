"""Many connections in one thread: each is a generator that yields what it waits for."""

from __future__ import annotations

import select
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TypeVar

    T = TypeVar("T")
    Wait = tuple[int, int, float] | None
    Steps = Generator[Wait, None, T]
    """What runs here: it yields a descriptor, `IN` or `OUT` and a deadline (0 for none), or None to let others run."""

IN, OUT = select.EPOLLIN, select.EPOLLOUT
_ENDED = select.EPOLLHUP | select.EPOLLERR


class Scheduler:
    """Runs generators until each of them ends."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._waiting: dict[int, dict[int, tuple[Steps[None], float]]] = {}
        self._ready: deque[Steps[None]] = deque()

    def start(self, steps: Steps[None]) -> None:
        """Run one more."""
        self._ready.append(steps)

    def run(self) -> None:
        """Run for ever; each second, those that have waited too long get a TimeoutError."""
        checked = time.monotonic()
        while True:
            for _ in range(len(self._ready)):
                self._advance(self._ready.popleft())
            for fd, events in self._poll.poll(0 if self._ready else 1):
                self._wake(fd, events)
            if time.monotonic() - checked > 1:
                checked = time.monotonic()
                self._expire(checked)

    def _advance(self, steps: Steps[None], problem: Exception | None = None) -> None:
        try:
            wanted = next(steps) if problem is None else steps.throw(problem)
        except StopIteration:
            return
        if wanted is None:
            self._ready.append(steps)
            return
        fd, event, deadline = wanted
        rows = self._waiting.setdefault(fd, {})
        rows[event] = (steps, deadline)
        if len(rows) == 1:
            self._poll.register(fd, event)
        else:
            self._poll.modify(fd, IN | OUT)

    def _wake(self, fd: int, events: int) -> None:
        rows = self._waiting[fd]
        for event in [event for event in rows if events & (event | _ENDED)]:
            self._ready.append(rows.pop(event)[0])
        self._rearm(fd, rows)

    def _rearm(self, fd: int, rows: dict[int, tuple[Steps[None], float]]) -> None:
        if rows:
            self._poll.modify(fd, next(iter(rows)))
        else:
            del self._waiting[fd]
            self._poll.unregister(fd)

    def _expire(self, now: float) -> None:
        for fd, rows in list(self._waiting.items()):
            late = [event for event, (_, deadline) in rows.items() if 0 < deadline < now]
            gone = [rows.pop(event)[0] for event in late]
            if gone:
                self._rearm(fd, rows)
            for steps in gone:
                self._advance(steps, TimeoutError("it took too long"))
