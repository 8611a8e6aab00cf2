"""Who performs the actions of hooks: one runner per kind, made at first use and closed with the set."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from hookline.core.engine.context import Context
from hookline.core.engine.outcome import Answer
from hookline.core.hooks.hook import Hook
from hookline.errors import HooklineError
from hookline.events import Event


class Runner(Protocol):
    """Performs one kind of action; one that holds on to something has an `aclose`, too."""

    async def run(self, hook: Hook, event: Event, ctx: Context) -> Answer:
        """Run the hook once; a run that goes wrong raises `HookFailed`."""


RunnerFactory = Callable[[type[Any]], Runner]
"""Makes the runner of one kind of action."""


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
            runner = self._runners.get(kind)
            if runner is None:
                if self._factory is None:
                    raise HooklineError(f"no runner for {kind.__name__} hooks; use `hookline.Hooks`, or pass runners=")
                runner = self._runners[kind] = self._factory(kind)
        return runner

    @property
    def abandoned(self) -> int:
        """How many `def` hooks still run in a thread although they are not waited for any more."""
        return sum(getattr(runner, "abandoned", 0) for runner in list(self._runners.values()))

    async def aclose(self) -> None:
        """End every runner."""
        with self._lock:
            runners, self._runners = list(self._runners.values()), {}
        for runner in runners:
            close = getattr(runner, "aclose", None)
            if close is not None:
                await close()
