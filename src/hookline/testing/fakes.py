"""Stand-ins for what a test should not depend on: the clock, other processes, and an audience."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookline.core.engine import Answer, Context, HookResponse, HookStarted, Notice, Outcome, Runner, Verdict
from hookline.core.hooks.actions import Function
from hookline.core.hooks.hook import Hook
from hookline.events import Event
from hookline.replies import NOTHING, Reply
from hookline.runners.function import FunctionRunner


class FakeClock:
    """A clock that goes only when told: `Hooks(clock=FakeClock())`, then `clock.advance(3)`.

    With `step` each look at it takes that long, so that every hook takes the same known time.
    """

    def __init__(self, start: float = 0.0, step: float = 0.0) -> None:
        self.now: float = start
        self.step = step

    def __call__(self) -> float:
        now = self.now
        self.now += self.step
        return now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class Recorder:
    """Remembers everything that a set of hooks did: `hooks.observe(recorder, inline=True)`."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def __call__(self, notice: Notice) -> None:
        self.notices.append(notice)

    @property
    def started(self) -> list[str]:
        """The names of the hooks that began to run, in order."""
        return [notice.hook for notice in self.notices if isinstance(notice, HookStarted)]

    @property
    def responses(self) -> list[HookResponse]:
        """How each run ended."""
        return [notice for notice in self.notices if isinstance(notice, HookResponse)]

    @property
    def verdicts(self) -> list[Verdict]:
        """What came of each event."""
        return [notice for notice in self.notices if isinstance(notice, Verdict)]

    @property
    def events(self) -> list[str]:
        """The names of the events that were fired, in order."""
        return [verdict.event.event_name for verdict in self.verdicts]


Script = Answer | BaseException | Callable[[Event], Answer]


class FakeRunner:
    """Answers for commands, HTTP endpoints, prompts and MCP tools without running any: `Hooks(runners=FakeRunner(…))`.

    `answers` has one answer per hook name: what the hook would reply, an exception it would raise, or a function of the
    event. Hooks without one get `default`. `calls` remembers who was asked what. Python functions still run.
    """

    def __init__(self, answers: Mapping[str, Script] | None = None, default: Script = None) -> None:
        self.answers: dict[str, Script] = dict(answers or {})
        self.default = default
        self.calls: list[tuple[str, Event]] = []

    def __call__(self, kind: type[Any], services: object) -> Runner:
        return FunctionRunner() if kind is Function else self

    async def run(self, hook: Hook, event: Event, ctx: Context) -> Answer:
        """Answer as scripted."""
        self.calls.append((hook.name, event))
        answer = self.answers.get(hook.name, self.default)
        if isinstance(answer, BaseException):
            raise answer
        return answer(event) if callable(answer) else answer


def make_outcome(reply: Reply = NOTHING, hook: str = "hook", **fields: Any) -> Outcome:
    """The outcome of a hook that answered, for tests of what is made of outcomes."""
    return Outcome(hook=hook, reply=reply, **fields)
