"""Runs of agents, which of them is calling a tool here and now, and whom their steps ask: hooks, and a person."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import uuid4

from hookline.core.engine import Verdict
from hookline.core.engine.composition import OnAsk, Resolution
from hookline.core.engine.engine import Fires, ask_people
from hookline.core.engine.loop_thread import run_sync
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, deny

T = TypeVar("T")
log: logging.Logger = logging.getLogger("hookline.adapters")
_Runs = Mapping[int, "AgentRun | None"]
_NO_RUNS: _Runs = MappingProxyType({})
_current: ContextVar[_Runs] = ContextVar("hookline_runs", default=_NO_RUNS)
"""The runs whose tools are being called here: an agent with several sets of hooks has one for each."""


class AgentRun:
    """One run of one agent: who it is, what its model has yet to be told, and whether it has to end.

    A run that starts inside a tool call of another run is a subagent: it shares the other's session.
    """

    def __init__(
        self,
        hooks: object,
        *,
        session_id: str | None = None,
        agent: str | None = None,
        cwd: str | None = None,
        parent: AgentRun | None = None,
    ) -> None:
        self.hooks = hooks
        self.parent = parent
        self.session_id: str = parent.session_id if parent else session_id or str(uuid4())
        self.cwd: str = cwd or (parent.cwd if parent else str(Path.cwd()))
        self.agent_id: str | None = uuid4().hex[:16] if parent else None
        self.agent_type = agent
        self.prompt_id: str = parent.prompt_id if parent else str(uuid4())
        self.notes: list[str] = []
        self.stopped: str | None = None
        self.refused = False
        self.continued = 0
        self.open = False
        self.finished = False  # whether hooks have heard that the agent wants to stop
        self._places: tuple[_Runs | None, _Runs, AgentRun | None] = (None, _NO_RUNS, None)

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that all events of this run carry."""
        return {
            "session_id": self.session_id, "cwd": self.cwd, "prompt_id": self.prompt_id,
            "agent_id": self.agent_id, "agent_type": self.agent_type,
        }  # fmt: skip

    def pop_notes(self) -> str:
        """What hooks want the model to know, once."""
        notes, self.notes = self.notes, []
        return "\n\n".join(notes)

    def stop(self, verdict: Verdict) -> None:
        """A hook ends the run: the first reason counts."""
        if verdict.stop and self.stopped is None:
            self.stopped = verdict.stop_reason or "a hook stopped the agent"

    def enter(self) -> AgentRun | None:
        """From here on, whatever starts belongs to this run; returns the run it would have belonged to."""
        around, places = _current.get(), self._places
        if places[0] is not around:
            places = self._placed(around)
        _current.set(places[1])
        return places[2]

    def leave(self, outer: AgentRun | None) -> None:
        """From here on, whatever starts belongs to the `outer` run again; other sets of hooks may come and go."""
        now, (around, within, _) = _current.get(), self._places
        _current.set(around if around is not None and now is within else {**now, id(self.hooks): outer})

    def _placed(self, around: _Runs) -> tuple[_Runs, _Runs, AgentRun | None]:
        """What is current around this run, what while it calls a tool, and the run of the former."""
        key = id(self.hooks)
        self._places = places = (around, {**around, key: self}, around.get(key))
        return places


class HandoverRuns:
    """The run of the first agent, and those of the agents that it hands over to."""

    def __init__(self, run: AgentRun) -> None:
        self.run = run
        self.agents: dict[str, AgentRun] = {}

    def run_of(self, agent: str) -> AgentRun:
        """The run of an agent; the first one's if it has none of its own."""
        return self.agents.get(agent, self.run)


def current_run(hooks: object) -> AgentRun | None:
    """The run whose tool is being called here, in whatever framework, as these hooks know it."""
    return _current.get().get(id(hooks))


class inside:  # noqa: N801 - read as a statement: `with inside(run):`
    """Whatever starts in here belongs to `run`."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._around = _current.get()
        self._run.enter()

    def __exit__(self, *error: object) -> None:
        _current.set(self._around)


# -- asking ------------------------------------------------------------------------------------------------------


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
        try:
            return await ask_people(self.hooks, verdict, self.on_ask)
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
