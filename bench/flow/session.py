"""One session before the guard: what is said, called and read goes through Hookline's engine, as on any host."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from hookline import Hooks
from hookline.events import PostToolUse, PreToolUse, SessionStart, UserPromptSubmit
from hookline.guards.flow import flow

Approve = Callable[[str], bool]


class Interruption(NamedTuple):
    """A call that was asked about or denied."""

    who: str
    level: str
    tool: str
    reason: str


class Session:
    """The guard's answers to one agent; `settings` of None means no guard at all."""

    def __init__(self, settings: dict[str, Any] | None, approve: Approve) -> None:
        self._hooks = Hooks()
        if settings is not None:
            self._hooks.add(*flow(state=False, **settings))
        self._approve = approve
        self.log: list[Interruption] = []

    async def start(self, prompt: str) -> None:
        """The user speaks."""
        await self._hooks.fire(SessionStart(session_id="s", cwd="/"))
        await self._hooks.fire(UserPromptSubmit(session_id="s", cwd="/", prompt=prompt))

    async def call(self, who: str, tool: str, given: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Make a call if it may be made, and return its result; `None` if it may not."""
        shown = json.loads(json.dumps(given, default=str))
        event = {"session_id": "s", "cwd": "/", "permission_mode": "default", "tool_name": tool, "tool_input": shown}
        verdict = await self._hooks.fire(PreToolUse(**event))
        level = "deny" if verdict.blocked else str(verdict.decision)
        if level in ("deny", "ask"):
            self.log.append(Interruption(who, level, tool, verdict.reason))
            if level == "deny" or not self._approve(who):
                return None
        result = run()
        await self._hooks.fire(PostToolUse(**event, tool_response=result))
        return result

    async def end(self) -> None:
        """Nothing more comes."""
        await self._hooks.aclose()

    def levels(self, who: str) -> set[str]:
        """How this side was interrupted."""
        return {one.level for one in self.log if one.who == who}
