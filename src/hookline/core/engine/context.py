"""What a hook is handed besides the event."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec

from hookline.core.engine.verdict import Answer, Outcome, Verdict
from hookline.core.hooks.declare import can_wait
from hookline.core.hooks.hook import Function, Hook
from hookline.errors import HookError, HooklineError
from hookline.events import Event

_firing: ContextVar[tuple[Hook, ...]] = ContextVar("_firing", default=())
"""The hooks whose `ctx.fire` led to where we are."""


class Cancelled:
    """Set when the hook's answer is no longer wanted; may be asked from any thread, and awaited on the loop."""

    _reason: str | None = None
    _waiting: tuple[tuple[asyncio.AbstractEventLoop, asyncio.Event], ...] = ()
    presumed: Callable[[], bool] | None = None
    """What tells whether the hook's task is being cancelled; only the engine sets this. The hook's own
    `asyncio.timeout` looks the same until it takes the cancellation back, so nothing is woken."""

    @property
    def reason(self) -> str | None:
        """Why: `timeout` or `cancelled`; `None` while the answer is wanted."""
        return self._reason or ("cancelled" if self.presumed is not None and self.presumed() else None)

    def is_set(self) -> bool:
        """Whether the hook should stop what it is doing."""
        return self.reason is not None

    __bool__ = is_set

    def set(self, reason: str) -> None:
        """Tell the hook; only the engine does this, on the loop."""
        self._reason = self._reason or reason
        waiting, self._waiting = self._waiting, ()
        for loop, told in waiting:
            with suppress(RuntimeError):  # the loop it was awaited on is closed
                loop.call_soon_threadsafe(told.set)

    async def wait(self) -> None:
        """Return once the hook's answer is no longer wanted."""
        if self._reason is None:
            told = asyncio.Event()
            self._waiting = (*self._waiting, (asyncio.get_running_loop(), told))
            await told.wait()


class HookScope(Protocol):
    """What a run may know of the set of hooks it belongs to."""

    timeout: float | None
    env: Mapping[str, str] | None
    grace: float
    clock: Callable[[], float]
    on_late: Callable[[Outcome], Any] | None
    project_dir: str

    def fire(self, event: Event) -> Coroutine[Any, Any, Verdict]: ...
    def applies_to(self, hook: Hook, event: Event) -> bool: ...


class Binding(msgspec.Struct, frozen=True):
    """A hook in its set, with what can be known before it runs."""

    hook: Hook
    scope: HookScope
    limit: float
    call: Callable[..., Any] | None = None  # the function of a plain hook, which needs no runner
    wants_context: bool = False
    waits: bool = True  # whether it may ever have to


def bind(hook: Hook, scope: HookScope) -> Binding:
    """Settle what does not depend on the event."""
    action, limit = hook.action, float(hook.limit(scope.timeout))
    if not hook.plain or not isinstance(action, Function):
        return Binding(hook, scope, limit)
    return Binding(hook, scope, limit, action.call, action.takes_context, can_wait(action.call))


class Context(msgspec.Struct):
    """Where and when a hook runs; made for each run, most of it looked up only when asked for."""

    event: Event
    binding: Binding
    started: float | None = None
    fire_deadline: float | None = None  # when all hooks of this `fire` have to be done, if there is a limit
    hook_id: str = ""
    on_progress: Callable[[str, str], None] | None = None
    told: Cancelled | None = None

    @property
    def hook(self) -> Hook:
        """The hook that runs."""
        return self.binding.hook

    @property
    def scope(self) -> HookScope:
        """The set of hooks it runs in."""
        return self.binding.scope

    @property
    def project_dir(self) -> str:
        """The project that the set of hooks belongs to, or the empty string."""
        return self.scope.project_dir

    @property
    def can_wake(self) -> bool:
        """Whether late answers of background hooks have a listener."""
        return self.scope.on_late is not None

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
        return self.scope.env if self.scope.env is not None else os.environ

    @property
    def tool_use_id(self) -> str:
        """The tool call the event is about, or the empty string."""
        return self.event.tool_use_id or ""

    @property
    def timeout(self) -> float:
        """Seconds this run may take."""
        return self.binding.limit

    @property
    def deadline(self) -> float:
        """When the answer is due, in the event loop's time."""
        if self.started is None:
            self.started = self.binding.scope.clock()
        due = self.started + self.binding.limit
        return due if self.fire_deadline is None else min(due, self.fire_deadline)

    @property
    def cancelled(self) -> Cancelled:
        """Ask `ctx.cancelled.is_set()`, or `await ctx.cancelled.wait()`."""
        if self.told is None:
            self.told = Cancelled()
        return self.told

    @property
    def log(self) -> logging.Logger:
        """A logger of the hook's own: `hookline.hook.<name>`."""
        return logging.getLogger(f"hookline.hook.{self.hook.name}")

    async def fire(self, event: Event) -> Verdict:
        """Send another event through the same set of hooks; not one that this hook, or one that led here, handles."""
        chain = (*_firing.get(), self.hook)
        looping = next((hook for hook in chain if self.scope.applies_to(hook, event)), None)
        if looping is not None:
            raise HookError(f"hook `{looping.name}` fires `{event.event_name}`, which it handles itself: a loop")
        token = _firing.set(chain)
        try:
            return await self.scope.fire(event)
        finally:
            _firing.reset(token)

    def progress(self, stream: str, text: str) -> None:
        """Tell observers what the hook printed so far."""
        if self.on_progress is not None:
            self.on_progress(stream, text)


class Runner(Protocol):
    """Performs one kind of action; one that holds on to something has an `aclose`, too."""

    async def run(self, hook: Hook, event: Event, ctx: Context) -> Answer:
        """Run the hook once; a run that goes wrong raises `HookFailed`."""


RunnerFactory = Callable[[type[Any]], Runner]  # makes the runner of one kind of action


class RunnerPool:
    """The runners of one set of hooks."""

    def __init__(self, factory: RunnerFactory | None) -> None:
        self._factory = factory
        self._lock = threading.Lock()
        self._runners: dict[type[Any], Runner] = {}

    def of(self, hook: Hook) -> Runner:
        """The runner that performs the hook's action."""
        kind = type(hook.action)
        with self._lock:
            if kind not in self._runners:
                if self._factory is None:
                    raise HooklineError(f"no runner for {kind.__name__} hooks; use `hookline.Hooks`, or pass runners=")
                self._runners[kind] = self._factory(kind)
            return self._runners[kind]

    async def aclose(self) -> None:
        """End every runner."""
        with self._lock:
            runners, self._runners = list(self._runners.values()), {}
        for runner in runners:
            close = getattr(runner, "aclose", None)
            if close is not None:
                await close()
