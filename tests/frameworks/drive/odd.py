"""What the modules `odd_…` share: cases that are one framework's own, or that strangers try first.

Each has `CASES`: a name → a function that plays the case and returns what came of it.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hookline import Hooks, deny, rewrite, stop
from hookline.events import CATALOG, PreToolUse, UserPromptSubmit
from tests.frameworks.drive.scenarios import FAILS, LS, RM, Seen

__all__ = [
    "FAILS", "LS", "RM", "Seen", "Watched", "cancelled", "deny_all", "deny_rm", "guarded_prompts", "mcp_server",
    "misfit", "played", "stop_at_rm", "usual",
]  # fmt: skip


class Watched(Hooks):
    """A set of hooks that remembers the events it was sent; `judge` answers before tool calls."""

    def __init__(self, judge: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        self.seen: list[dict[str, Any]] = []
        self.on(*CATALOG, rejudge=False, priority=1000)(self._watch)
        if judge is not None:
            self.on(PreToolUse)(self._asynchronous(judge))

    async def _watch(self, event: Any) -> None:
        fields = ("session_id", "agent_id", "tool_name", "tool_input", "tool_response", "prompt", "error")
        kept = {name: getattr(event, name) for name in fields if getattr(event, name, None) is not None}
        self.seen.append({"event": event.event_name, **kept})

    @staticmethod
    def _asynchronous(judge: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def answer(event: Any) -> Any:
            return judge(event)

        return answer


def deny_all(event: Any) -> Any:
    return deny("NO_X")


def deny_rm(event: Any) -> Any:
    return deny("NO_X\nand a second line") if "rm" in str(event.tool_input) else None


def stop_at_rm(event: Any) -> Any:
    return stop("STOP_X") if "rm" in str(event.tool_input) else None


def misfit(event: Any) -> Any:
    return rewrite({"no such argument": 1})


def guarded_prompts() -> Watched:
    """Hooks that refuse prompts with a secret."""
    hooks = Watched()

    @hooks.on(UserPromptSubmit)
    async def judge(event: UserPromptSubmit) -> Any:
        return deny("NO_X") if "secret" in event.prompt else None

    return hooks


@contextmanager
def mcp_server(seen: Seen) -> Iterator[tuple[str, list[str]]]:
    """The program and arguments of an MCP server whose tool is `shell`; what it ran is in `seen` afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "calls"
        log.touch()
        yield sys.executable, [str(Path(__file__).with_name("mcp_server.py")), str(log)]
        seen.calls += log.read_text().splitlines()


def played(seen: Seen, work: Callable[[], Any], *hooks: Watched) -> dict[str, Any]:
    """Do it, and say what came of it."""
    try:
        answer, error = work(), ""
    except Exception as problem:
        answer, error = "", f"{type(problem).__name__}: {problem}"
    events = [one.seen for one in hooks]
    return {"calls": seen.calls, "requests": seen.requests, "answer": answer, "error": error, "events": events}


async def cancelled(work: Coroutine[Any, Any, Any], reached: asyncio.Event) -> str:
    """Cancel work once it has come this far."""
    task = asyncio.create_task(work)
    await reached.wait()
    task.cancel()
    await asyncio.wait([task])
    return "cancelled" if task.cancelled() else "went on"


def usual(answer: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    """What strangers try first, where `answer(seen, turns, *hooks)` puts one prompt through a framework."""

    def two_sets() -> Any:
        seen, first, second = Seen(), Watched(), Watched(deny_rm)
        return played(seen, lambda: answer(seen, [[LS, RM]], first, second), first, second)

    def misfitting_rewrite() -> Any:
        seen, hooks = Seen(), Watched(misfit)
        return played(seen, lambda: answer(seen, [LS], hooks), hooks)

    return {case.__name__: case for case in (two_sets, misfitting_rewrite)}
