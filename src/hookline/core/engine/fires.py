"""A set of hooks as its callers see it: something an event can be sent through."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from hookline.core.engine.verdict import Verdict
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
