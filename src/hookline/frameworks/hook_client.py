"""Whom an adapter's steps ask: the hooks about events, and a person or program about questions."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from hookline.core.engine import Verdict
from hookline.core.engine.composition import OnAsk, Resolution
from hookline.core.engine.hook_set import Fires
from hookline.core.engine.loop_thread import run_sync
from hookline.events import Event, spec_of
from hookline.frameworks.agent_runs import AgentRun, current_run
from hookline.replies import NOTHING, deny

T = TypeVar("T")
log: logging.Logger = logging.getLogger("hookline.adapters")


class HookClient:
    """A set of hooks as one adapter sees it: it never raises where a gate has to be closed."""

    def __init__(self, hooks: Fires, on_ask: OnAsk | None = None) -> None:
        self.hooks = hooks
        self.on_ask = on_ask

    def new_run(self, *, session_id: str | None = None, agent: str | None = None) -> AgentRun:
        """A run that starts here and now: a subagent's if a tool of another run is being called."""
        return AgentRun(self.hooks, session_id=session_id, agent=agent, parent=current_run(self.hooks))

    async def fire(self, event: Event) -> Verdict:
        """The verdict on one event; a gate whose hooks cannot be asked is closed."""
        try:
            return await self.hooks.fire(event)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever it is, a gate must close
            return _unasked(event, problem)

    async def ask(self, verdict: Verdict) -> Resolution:
        """The answer to a verdict of `ask`; `None` if there is no one to ask."""
        if self.on_ask is None:
            return None
        try:
            answer = self.on_ask(verdict)
            return await answer if inspect.isawaitable(answer) else answer
        except (Exception, SystemExit) as problem:
            log.exception("on_ask failed")
            return deny(f"on_ask failed: {type(problem).__name__}: {problem}")


class SyncHookClient(HookClient):
    """The same for a caller that cannot await: nothing here waits, and so no step that asks this way does."""

    async def fire(self, event: Event) -> Verdict:
        """The verdict on one event."""
        try:
            return self.hooks.fire_sync(event)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever it is, a gate must close
            return _unasked(event, problem)

    async def ask(self, verdict: Verdict) -> Resolution:
        """The answer to a verdict of `ask`."""
        return run_sync(super().ask(verdict))


def done(step: Coroutine[Any, Any, T]) -> T:
    """The answer of a step that asks a `SyncHookClient`."""
    try:
        step.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a step that waits for nothing waited")


def _unasked(event: Event, problem: BaseException) -> Verdict:
    """The verdict on an event that hooks could not be asked about: a gate is closed."""
    log.error("hooks on %s could not be asked", event.event_name, exc_info=problem)
    reason = f"hooks could not be asked: {type(problem).__name__}: {problem}; {event.event_name} fails closed"
    return Verdict(event, deny(reason) if spec_of(event).gate else NOTHING)
