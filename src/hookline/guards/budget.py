"""A limit on what one session may spend: tool calls, seconds, calls of single tools."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic

from hookline.errors import HookError
from hookline.events import Event, PreToolUse, SessionEnd, SessionStart
from hookline.hooks import Hook, hook
from hookline.hooks.declare import declared
from hookline.replies import Reply, deny

_MOST_SESSIONS = 1_000


def limit(
    tool_calls: int | None = None,
    seconds: float | None = None,
    per_tool: Mapping[str, int] | None = None,
    *,
    clock: Callable[[], float] = monotonic,
) -> list[Hook]:
    """Deny tool calls beyond a session's budget: `budget.limit(tool_calls=200, seconds=900, per_tool={"Bash": 50})`."""
    limits = [tool_calls, seconds, *(per_tool or {}).values()]
    if all(number is None for number in limits):
        raise HookError("a budget needs a limit: pass tool_calls=, seconds= or per_tool=")
    if any(number is not None and not number > 0 for number in limits):
        raise HookError("a budget's limits must be more than 0")
    return declared(Budget(tool_calls, seconds, dict(per_tool or {}), clock))


class Budget:
    """Counts per session; a session that ends is forgotten."""

    def __init__(
        self, tool_calls: int | None, seconds: float | None, per_tool: dict[str, int], clock: Callable[[], float]
    ) -> None:
        self._tool_calls, self._seconds, self._per_tool, self._clock = tool_calls, seconds, per_tool, clock
        self._used: dict[str, Counter[str]] = {}
        self._began: dict[str, float] = {}
        self._lock = threading.Lock()

    @hook(SessionStart, name="budget.start", rejudge=False)
    async def start(self, event: Event) -> None:
        """The clock of a session starts with it."""
        with self._lock:
            self._begin(event.session_id)

    @hook(SessionEnd, name="budget.end", rejudge=False)
    async def end(self, event: Event) -> None:
        """A session that is over needs no budget."""
        with self._lock:
            self._used.pop(event.session_id, None)
            self._began.pop(event.session_id, None)

    @hook(PreToolUse, name="budget.limit", priority=90, rejudge=False)
    async def spend(self, event: PreToolUse) -> Reply | None:
        """Count the call, or deny it because there is nothing left to spend."""
        with self._lock:
            self._begin(event.session_id)
            used = self._used[event.session_id]
            spent = self._spent(event, used)
            if spent is None:
                used.update([event.tool_name, ""])
            return spent

    def _begin(self, session: str) -> None:
        if session not in self._used:
            if len(self._used) >= _MOST_SESSIONS:
                oldest = next(iter(self._used))
                del self._used[oldest], self._began[oldest]
            self._used[session] = Counter()
            self._began[session] = self._clock()

    def _spent(self, event: PreToolUse, used: Counter[str]) -> Reply | None:
        if self._tool_calls is not None and used[""] >= self._tool_calls:
            return deny(f"the budget of {self._tool_calls} tool calls is spent")
        allowed = self._per_tool.get(event.tool_name)
        if allowed is not None and used[event.tool_name] >= allowed:
            return deny(f"the budget of {allowed} calls of `{event.tool_name}` is spent")
        if self._seconds is not None and self._clock() - self._began[event.session_id] > self._seconds:
            return deny(f"the budget of {self._seconds:g} seconds is spent")
        return None
