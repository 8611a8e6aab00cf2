"""A user's hooks under a team's policy: two sets, fired apart, of which the stricter answer counts.

Neither set can reach the other. Whatever the user's file does to its own set (it only evaluates, it lifts questions,
it is switched off, it is a class of its own), the team's set is asked about the same event, and its answer stands.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Unpack

import msgspec

from hookline.api import Hooks
from hookline.core.engine import Notice, Outcome, Verdict
from hookline.core.engine.composition import unenforced
from hookline.core.engine.merge import second_judgement
from hookline.core.hooks.declare import Options
from hookline.core.hooks.hook import Hook
from hookline.core.wire.dialects import detect, dialect
from hookline.events import Event
from hookline.replies import NOTHING, Reply
from hookline.runners import runner_for
from hookline.runners.services import Services


class GovernedHooks(Hooks):
    """The user's set `own` under the hooks that `policy` gives, which is asked at every event.

    Hooks that are added go to the user's set; observers see the merged verdicts, and what the hooks of both sets do.
    """

    def __init__(self, own: Hooks, policy: Callable[[], tuple[Hook, ...]]) -> None:
        self.own = own
        self._wanted = policy
        self._team: tuple[tuple[Hook, ...], Hooks] | None = None
        self._replaced: list[Hooks] = []
        services = own.services
        super().__init__(project_dir=own.engine.project_dir)
        self.services = services
        self.settings = own.settings
        self.engine.refresh_with(lambda: None)  # no event is skipped: either set may want it
        for observer, inline in own.engine.observers.take():
            self.observe(observer, inline=inline)
        self._attach(own)

    def _attach(self, part: Hooks) -> Hooks:
        """What a part's hooks do, and what they still do in the background, is heard of here."""
        part.engine.background = part.engine.dispatcher.background = self.engine.background
        part.engine.on_late = self._late
        part.observe(self._pass_on, inline=True)
        return part

    def _late(self, outcome: Outcome) -> None:
        if self.engine.on_late is not None:
            self.engine.on_late(outcome)

    def _pass_on(self, notice: Notice) -> None:
        """Of verdicts, only the one that counts is told."""
        if not isinstance(notice, Verdict):
            self.engine.observers.notify(notice)

    @property
    def policy(self) -> Hooks:
        """The team's set, as it is now; made of nothing that the user's file can set."""
        wanted = self._wanted()
        if self._team is None or self._team[0] is not wanted:
            if self._team is not None:
                self._replaced.append(self._team[1])
            project = "" if self.settings is None else self.own.engine.project_dir
            made = Hooks(project_dir=project, runners=lambda kind, _: runner_for(kind, lambda: self.services))
            made.engine.enabled = True  # whatever the environment says
            if wanted:
                made.add(*wanted)
            self._team = wanted, self._attach(made)
        return self._team[1]

    @property
    def services(self) -> Services:
        """What a host gives both sets' hooks to work with."""
        return self.own.services

    @services.setter
    def services(self, services: Services) -> None:
        self.own.services = services

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The team's hooks, then the user's."""
        return (*self.policy.hooks, *self.own.hooks)

    def on(self, *events: Any, **options: Unpack[Options]) -> Any:
        """Register a function in the user's set."""
        return self.own.on(*events, **options)

    def add(self, *things: Any, **options: Unpack[Options]) -> tuple[Hook, ...]:
        """Register hooks in the user's set."""
        return self.own.add(*things, **options)

    def remove(self, name: str) -> Hook:
        """Take a hook out of the user's set; the team's cannot be removed."""
        return self.own.remove(name)

    def fire(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Coroutine[Any, Any, Verdict]:
        """Send an event through both sets; the strictest answer counts."""
        return self._fire(event, deadline, only)

    async def _fire(self, event: Event | Mapping[str, Any], deadline: float | None, only: str | None) -> Verdict:
        if isinstance(event, Mapping):
            event = dialect(detect(event)).decode_event(event)
        verdict = await self._judge(event, deadline, only)
        if verdict.evaluated is not None:
            return unenforced(self.engine.notify(msgspec.structs.replace(verdict, reply=verdict.evaluated)))
        return self.engine.notify(verdict)

    async def _judge(self, event: Event, deadline: float | None, only: str | None) -> Verdict:
        """The team first, with all the time there is; then the user, about what the team would let run."""
        policy = self.policy
        if only is not None:
            named = any(hook.name == only for hook in policy.hooks)
            return await (policy if named else self.own).fire(event, deadline, only)
        first = await policy.fire(event, deadline)
        if first.blocked:
            return first
        judged = _with_input(event, first.reply)
        mine = await self.own.fire(judged, deadline)
        said = NOTHING if mine.evaluated is not None else mine.reply
        team, outcomes = first.reply, (*first.outcomes, *mine.outcomes)
        if said.input is not None and said.input != getattr(judged, "tool_input", None) and not mine.blocked:
            second = await policy.fire(_with_input(event, said), deadline)
            team = msgspec.structs.replace(second_judgement(team, second.reply), input=second.reply.input)
            outcomes += tuple(map(_second, second.outcomes))
        evaluated = mine.evaluated if team == NOTHING else None
        return Verdict(event, said | team, known=outcomes, evaluated=evaluated)

    async def aclose(self, limit: float = 5.0) -> list[Outcome]:
        """End both sets."""
        late = await self.engine.background.drain(limit)
        for part in (self.policy, *self._replaced, self.own):
            late += await part.aclose(0.0)
        return late + await super().aclose(0.0)


def _with_input(event: Event, reply: Reply) -> Event:
    """The event with the input that a reply would have run."""
    return event if reply.input is None else msgspec.structs.replace(event, tool_input=reply.input)


def _second(outcome: Outcome) -> Outcome:
    return msgspec.structs.replace(outcome, note=outcome.note or "asked about the rewritten input")
