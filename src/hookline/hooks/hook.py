"""A hook: when it applies, what it runs, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from hookline.errors import HookError
from hookline.events import Event
from hookline.hooks.actions import DEFAULT_TIMEOUTS, Action, Function
from hookline.hooks.condition import Rule
from hookline.hooks.matcher import EVERYTHING, Matcher

OnFailure = Literal["block", "continue"]


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One registered hook.

    `on_failure=None` takes the event's default: a gate is closed, an observer's failure is only recorded. `source`
    says where the hook was declared. `rejudge=False` is for hooks that only watch (law 4). `plain`
    is worked out here: an async function that may take the engine's fast lane.
    """

    name: str
    events: tuple[type[Event], ...]
    action: Action
    matcher: Matcher = EVERYTHING
    condition: Rule | None = None
    when: Callable[[Any], bool] | None = None
    priority: int = 0
    timeout: float | None = None
    on_failure: OnFailure | None = None
    background: bool = False
    once: bool = False
    rejudge: bool = True
    inline: bool = False
    source: str = "code"
    status_message: str | None = None
    plain: bool = False

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise HookError(f"hook `{self.name}`: timeout must be more than 0 seconds, got `{self.timeout}`")
        if self.on_failure not in (None, "block", "continue"):
            raise HookError(f"hook `{self.name}`: on_failure must be `block` or `continue`, got `{self.on_failure}`")
        if not self.events:
            raise HookError(f"hook `{self.name}` names no event; write `@hooks.on(PreToolUse)`")
        plain = type(self.action) is Function and self.action.is_async and not (self.background or self.once)
        msgspec.structs.force_setattr(self, "plain", plain)

    def limit(self, default: float | None) -> float:
        """Seconds one run may take: the hook's own, else the set's, else the kind's."""
        return self.timeout or default or DEFAULT_TIMEOUTS[type(self.action)]


@runtime_checkable
class HookLike(Protocol):
    """Any object with these is a hook too; `match`, `priority`, `timeout` and the rest are read if it has them."""

    name: str
    events: Any

    def execute(self, event: Any, ctx: Any) -> Any:
        """Answer the event: `None`, a `Reply`, or a mapping in the wire format."""
