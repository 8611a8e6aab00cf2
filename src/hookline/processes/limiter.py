"""How many programs may be starting at once: more of them stall the event loop and finish no sooner."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from typing import Self

import msgspec

PARALLEL_STARTS = min(8, os.cpu_count() or 1)
"""Programs that may be starting at once: more of them stall the event loop and finish no sooner."""


class Slots(msgspec.Struct):
    """A bound on programs that are starting; one that turns out to be no short one gives its slot back.

    No two start in the same turn of the event loop: a start holds the loop up for as long as the kernel takes.
    """

    free: int = PARALLEL_STARTS
    started: bool = False
    waiting: deque[asyncio.Future[None]] = msgspec.field(default_factory=deque)

    def hold(self) -> Slot:
        return Slot(self)

    async def take(self) -> None:
        loop = asyncio.get_running_loop()
        if self.free > 0 and not self.started:
            self._start(loop)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()
            raise

    def give(self) -> None:
        self.free += 1
        self._admit()

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.free -= 1
        self.started = True
        loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self.started = False
        self._admit()

    def _admit(self) -> None:
        while self.waiting and self.free > 0 and not self.started:
            turn = self.waiting.popleft()
            if not turn.done():
                self._start(turn.get_loop())
                turn.set_result(None)


class Slot:
    """One slot, held from before the start until the program has ended or has proved to be long-lived."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.given: bool = False

    async def __aenter__(self) -> Self:
        await self.slots.take()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.give()

    def leave_with(self, exit: asyncio.Future[int | None]) -> None:
        exit.add_done_callback(lambda _: self.give())

    def give(self) -> None:
        if not self.given:
            self.given = True
            self.slots.give()


_SLOTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Slots] = weakref.WeakKeyDictionary()


def slots() -> Slots:
    """The slots of the running event loop."""
    return _SLOTS.setdefault(asyncio.get_running_loop(), Slots())
