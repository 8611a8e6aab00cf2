"""What a hook is handed besides the event."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

import msgspec

from hookline.errors import HookError
from hookline.events import Event
from hookline.hooks.hook import Hook

if TYPE_CHECKING:
    from hookline.engine.engine import Engine
    from hookline.engine.verdict import Verdict

_firing: ContextVar[tuple[Hook, ...]] = ContextVar("_firing", default=())
"""The hooks whose `ctx.fire` led to where we are."""


class Cancelled:
    """Set when the hook's answer is no longer wanted; may be asked from any thread, and awaited on the loop."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        """Whether the hook should stop what it is doing."""
        return self.reason is not None

    __bool__ = is_set

    def set(self, reason: str) -> None:
        """Tell the hook; only the engine does this, on the loop."""
        self.reason = self.reason or reason
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            with suppress(RuntimeError):  # the loop it was awaited on is closed
                future.get_loop().call_soon_threadsafe(_resolve, future)

    async def wait(self) -> None:
        """Return once the hook's answer is no longer wanted."""
        if self.reason is None:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Circumstances(msgspec.Struct):
    """What most runs never need: a deadline of the whole `fire`, somebody who watches, a cancellation."""

    fire_deadline: float | None = None
    hook_id: str = ""
    on_progress: Callable[[str, str], None] | None = None
    cancelled: Cancelled | None = None


class Seat(msgspec.Struct, frozen=True):
    """A hook, and the set it runs in."""

    hook: Hook
    engine: Engine


class Context(msgspec.Struct):
    """Where and when a hook runs; made anew for each run, most of it looked up only when asked for."""

    event: Event
    seat: Seat
    started: float | None = None
    more: Circumstances | None = None

    @property
    def hook(self) -> Hook:
        """The hook that runs."""
        return self.seat.hook

    @property
    def engine(self) -> Engine:
        """The set of hooks it runs in."""
        return self.seat.engine

    @property
    def circumstances(self) -> Circumstances:
        """What else there is to know of this run."""
        if self.more is None:
            self.more = Circumstances()
        return self.more

    @property
    def session_id(self) -> str:
        """The session the event belongs to."""
        return self.event.session_id

    @property
    def cwd(self) -> str:
        """The folder the agent works in."""
        return self.event.cwd

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that hooks of this set see."""
        return self.engine.env if self.engine.env is not None else os.environ

    @property
    def tool_use_id(self) -> str:
        """The tool call the event is about, or the empty string."""
        return getattr(self.event, "tool_use_id", "")

    @property
    def timeout(self) -> float:
        """Seconds this run may take."""
        return self.hook.limit(self.engine.timeout)

    @property
    def deadline(self) -> float:
        """When the answer is due, in the event loop's time."""
        if self.started is None:
            self.started = self.engine.clock()
        due, last = self.started + self.timeout, self.fire_deadline
        return due if last is None else min(due, last)

    @property
    def fire_deadline(self) -> float | None:
        """When all hooks of this `fire` have to be done, if somebody said so."""
        return None if self.more is None else self.more.fire_deadline

    @property
    def cancelled(self) -> Cancelled:
        """Ask `ctx.cancelled.is_set()`, or `await ctx.cancelled.wait()`."""
        more = self.circumstances
        if more.cancelled is None:
            more.cancelled = Cancelled()
        return more.cancelled

    @property
    def log(self) -> logging.Logger:
        """A logger of the hook's own: `hookline.hook.<name>`."""
        return logging.getLogger(f"hookline.hook.{self.hook.name}")

    async def fire(self, event: Event) -> Verdict:
        """Send another event through the same set of hooks; not one that this hook, or one that led here, handles."""
        chain = (*_firing.get(), self.hook)
        looping = next((hook for hook in chain if self.engine.concerns(hook, event)), None)
        if looping is not None:
            raise HookError(f"hook `{looping.name}` fires `{event.event_name}`, which it handles itself: a loop")
        token = _firing.set(chain)
        try:
            return await self.engine.fire(event)
        finally:
            _firing.reset(token)

    @property
    def watched(self) -> bool:
        """Whether somebody wants to know what the hook prints."""
        return self.more is not None and self.more.on_progress is not None

    def progress(self, stream: str, text: str) -> None:
        """Tell observers what the hook printed so far."""
        if self.more is not None and self.more.on_progress is not None:
            self.more.on_progress(stream, text)

    def cancel(self, reason: str) -> None:
        """The answer is no longer wanted; only the engine says so."""
        self.cancelled.set(reason)
