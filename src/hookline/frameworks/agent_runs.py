"""Runs of agents: who each one is, and which of them is calling a tool here and now."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from hookline.core.engine import Verdict

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
