"""A set of hooks as its callers see it: code that fires events asks for one of these, not for a class."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from hookline.core.engine.composition import OnAsk, Resolution
from hookline.core.engine.engine import Engine
from hookline.core.engine.observers import Observer
from hookline.core.engine.outcome import Outcome
from hookline.core.engine.verdict import Approval, Verdict
from hookline.core.hooks.hook import Hook
from hookline.events import Event
from hookline.replies import Reply


class FiresAsync(Protocol):
    """Takes an event, gives the verdict."""

    def fire(self, event: Event, /) -> Coroutine[Any, Any, Verdict]:
        """Send an event through the hooks."""


def has_no_listeners(hooks: object, kind: type[Event]) -> bool:
    """Whether no hook or observer would hear of such an event, as far as is known: then it need not be made."""
    engine = getattr(hooks, "engine", None)
    return engine is not None and kind in engine.unheard


async def ask_people(hooks: object, verdict: Verdict, on_ask: OnAsk | None = None) -> Resolution:
    """The answer to a verdict of `ask`, from `on_ask` or the set's own fallback; `None` if there is no one to ask."""
    engine = getattr(hooks, "engine", None)
    on_ask = on_ask or getattr(engine, "fallback", None)
    if on_ask is None:
        return None
    answer = on_ask(verdict)
    answer = await answer if inspect.isawaitable(answer) else answer
    if isinstance(answer, Approval) and engine is not None:
        reply: Reply = engine.record_approval(verdict, answer)
        return reply
    return None if answer is NotImplemented else answer


class Fires(FiresAsync, Protocol):
    """The same for callers of either kind: `Hooks`."""

    def fire_sync(self, event: Event) -> Verdict:
        """The same for a caller that cannot await."""


class HookSet(Protocol):
    """What `hookline.Hooks` is to an agent, a host or a replay."""

    @property
    def engine(self) -> Engine:
        """The parts behind it."""

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All hooks, in the order they run."""

    def add(self, *things: Any, **options: Any) -> tuple[Hook, ...]:
        """Register hooks."""

    def remove(self, name: str) -> Hook:
        """Take a hook out of the set."""

    def fire(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Coroutine[Any, Any, Verdict]:
        """Send an event through the hooks it concerns."""

    def observe(self, observer: Observer, *, inline: bool = False) -> Observer:
        """Tell `observer` of every hook and of every verdict."""

    def pending(self) -> list[Outcome]:
        """Late outcomes of background hooks since the last call."""

    async def drain(self, timeout: float | None = None) -> list[Outcome]:  # noqa: ASYNC109 - it bounds the waiting only
        """Wait for background hooks that still run."""

    async def aclose(self, limit: float = 5.0) -> list[Outcome]:
        """End the set."""
