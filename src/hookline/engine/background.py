"""Hooks that answered "later": they go on by themselves, and their late answers are collected."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hookline.engine.outcome import Outcome

log = logging.getLogger("hookline.background")


class Background:
    """The runs of one set of hooks that nobody waits for."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._late: list[Outcome] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, run: Coroutine[Any, Any, Outcome], tell: Callable[[Outcome], None] | None = None) -> None:
        """Let `run` go on by itself; its outcome is kept until somebody collects it."""
        task = asyncio.get_running_loop().create_task(run)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finished(done, tell))

    def _finished(self, task: asyncio.Task[Outcome], tell: Callable[[Outcome], None] | None) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.error("a background hook could not be run", exc_info=error)
            return
        self._late.append(task.result())
        if tell is not None:
            tell(task.result())

    def collect(self) -> list[Outcome]:
        """The late outcomes so far; each is handed out once."""
        late, self._late = self._late, []
        return late

    async def drain(self, timeout: float | None = None) -> list[Outcome]:
        """Wait for what still runs, up to `timeout`, and collect."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=timeout)
            await asyncio.sleep(0)  # done-callbacks file the outcomes
        return self.collect()

    async def aclose(self, limit: float) -> list[Outcome]:
        """Wait up to `limit`, then cancel what is left and see it end."""
        late = await self.drain(limit)
        left = tuple(self._tasks)
        for task in left:
            task.cancel()
        if left:
            log.warning("%d background hook(s) were cancelled because their set was closed", len(left))
            await asyncio.wait(left)
            await asyncio.sleep(0)
        return late + self.collect()


async def as_coroutine(work: Awaitable[Any] | None) -> Any:
    """Anything awaitable, as a coroutine; nothing to wait for is nothing to say."""
    return await work if inspect.isawaitable(work) else None
