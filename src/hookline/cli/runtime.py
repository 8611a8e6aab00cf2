"""Running a command's work to its end, so that nothing hooks started outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.api import Hooks
from hookline.core.engine.observers import HookResponse, HookStarted, Notice
from hookline.core.hooks import AgentCheck, McpTool, Prompt

if TYPE_CHECKING:
    from hookline.processes.watch import SharedDeadline

T = TypeVar("T")
TERMINATED = 143


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; TERM ends it as Ctrl-C does, and with it everything that hooks have started."""

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _cancel_once, task)
        return await work

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


def _cancel_once(task: asyncio.Task[Any]) -> None:
    """A second signal does not cut the cleaning up short."""
    if not task.cancelling():
        task.cancel()


_LOADING = 60.0
_PATIENCE = 3.0


class TimeKeeper:
    """Tells the process that watches when the hooks that run are due, so that it can end one that holds this process.

    What a hook's own time limit can end, that ends: `_PATIENCE` seconds are given on top.
    """

    def __init__(self, due: SharedDeadline) -> None:
        self._due = due
        self._running: dict[str, float] = {}

    def loading(self) -> None:
        """Hooks are about to be read, and their files may run anything; a person at a terminal may be asked first."""
        self._due.within(None if sys.stdin.isatty() else _LOADING)

    def watch(self, hooks: Hooks) -> Hooks:
        """The hooks have been read; from now on each has its own time."""
        self._due.within(None)
        hooks.observe(self, inline=True)
        return hooks

    def __call__(self, notice: Notice) -> None:
        """A hook began, or is done."""
        if isinstance(notice, HookStarted):
            self._running[notice.hook_id] = notice.limit + _PATIENCE
        elif isinstance(notice, HookResponse):
            self._running.pop(notice.hook_id, None)
        else:
            return
        self._due.within(max(self._running.values(), default=None))


# -- what hooks need from a host --------------------------------------------------------------------------------------


@asynccontextmanager
async def hosted(hooks: Hooks, *, model: str | None, mcp_config: str | None, cwd: str) -> AsyncIterator[None]:
    """Give the hooks what their kinds need, for as long as this lasts."""
    kinds = {type(hook.action) for hook in hooks.hooks}
    if not kinds & {Prompt, AgentCheck, McpTool}:
        yield
        return
    from hookline.agent.hook_services import services

    async with services(model=model, mcp_config=mcp_config, cwd=cwd) as found:
        hooks.services = found
        yield
