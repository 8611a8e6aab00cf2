"""A set of hooks as its callers see it: code that fires events asks for one of these, not for a class."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from hookline.core.engine.engine import Engine
from hookline.core.engine.observers import Observer
from hookline.core.engine.outcome import Outcome
from hookline.core.engine.verdict import Verdict
from hookline.core.hooks.hook import Hook
from hookline.events import Event


class FiresAsync(Protocol):
    """Takes an event, gives the verdict."""

    def fire(self, event: Event, /) -> Coroutine[Any, Any, Verdict]:
        """Send an event through the hooks."""


def has_no_listeners(hooks: object, kind: type[Event]) -> bool:
    """Whether no hook or observer would hear of such an event, as far as is known: then it need not be made."""
    engine = getattr(hooks, "engine", None)
    return engine is not None and kind in engine.unheard


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
