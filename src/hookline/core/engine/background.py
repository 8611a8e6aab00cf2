"""Hooks that answered "later": they go on by themselves, and their late answers are collected."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from hookline.core.engine.outcome import Outcome

log: logging.Logger = logging.getLogger("hookline.background")


class Background:
    """The runs of one set of hooks in the background."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._late: deque[Outcome] = deque()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, run: Coroutine[Any, Any, Outcome], tell: Callable[[Outcome], Any] | None = None) -> None:
        """Let `run` go on by itself; its outcome is kept until it is collected, and `tell` is told at once."""
        task = asyncio.get_running_loop().create_task(run)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finished(done, tell))

    def _finished(self, task: asyncio.Task[Outcome], tell: Callable[[Outcome], Any] | None) -> None:
        self._tasks.discard(task)
        if task.cancelled():  # before it began, by closing the loop
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
        late: list[Outcome] = []
        while self._late:
            late.append(self._late.popleft())
        return late

    async def drain(self, timeout: float | None = None) -> list[Outcome]:  # noqa: ASYNC109 - it bounds the waiting only
        """Wait for what still runs on this loop, up to `timeout`, and collect."""
        here = self._tasks_here()
        if here:
            await asyncio.wait(here, timeout=timeout)
            await asyncio.sleep(0)  # done-callbacks file the outcomes
        return self.collect()

    async def aclose(self) -> list[Outcome]:
        """Cancel what is left, see it end, and collect."""
        left = len(self._tasks)
        if left:
            log.warning("%d background hook(s) were cancelled because their set was closed", left)
        here = self._tasks_here()
        for task in self._tasks - here:
            with suppress(RuntimeError):  # its loop is closed already
                task.get_loop().call_soon_threadsafe(task.cancel)
        for task in here:
            task.cancel()
        return await self.drain()

    def _tasks_here(self) -> set[asyncio.Task[Outcome]]:
        loop = asyncio.get_running_loop()
        return {task for task in tuple(self._tasks) if task.get_loop() is loop}


async def as_coroutine(work: Awaitable[Any] | None) -> Any:
    """Anything awaitable, as a coroutine; nothing to wait for is nothing to say."""
    return await work if inspect.isawaitable(work) else None
