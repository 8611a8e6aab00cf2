"""An agent before the guard: what it is told, calls and reads, and what the guard said to each call."""

from typing import Any

from hookline import Hooks
from hookline.events import PostToolUse, PreToolUse, SessionStart, UserPromptSubmit
from hookline.guards.flow import flow


class Agent:
    """A session; `flow()` gets the settings."""

    def __init__(self, session: str = "s", *, mode: str | None = "default", **settings: Any) -> None:
        self.hooks = Hooks()
        self.hooks.add(*flow(**{"state": False, **settings}))
        self._base: dict[str, Any] = {"session_id": session, "cwd": "/project", "permission_mode": mode}
        self.reason = ""
        self.said: list[tuple[str, str]] = []

    async def start(self, prompt: str) -> "Agent":
        """The session begins, and the user speaks."""
        await self.hooks.fire(SessionStart(session_id=self._base["session_id"]))
        return await self.hear(prompt)

    async def hear(self, prompt: str, **more: Any) -> "Agent":
        """The user speaks, unless `more` says that it was not the user."""
        await self.hooks.fire(UserPromptSubmit(**self._base, prompt=prompt, **more))
        return self

    async def read(self, tool: str, given: dict[str, Any], result: Any) -> "Agent":
        """A call has been made, and returned something."""
        await self.hooks.fire(PostToolUse(**self._base, tool_name=tool, tool_input=given, tool_response=result))
        return self

    async def judge(self, tool: str, given: dict[str, Any]) -> str:
        """What the guard says to a call: `deny`, `ask` or `pass`; `reason` has the last reason."""
        verdict = await self.hooks.fire(PreToolUse(**self._base, tool_name=tool, tool_input=given))
        self.reason = verdict.reason
        return "deny" if verdict.blocked else "ask" if str(verdict.decision) == "ask" else "pass"

    async def play(self, steps: list[tuple[Any, ...]]) -> str:
        """Make calls one after the other, those that are denied left out; the worst that was said to one."""
        worst = set()
        for step in steps:
            tool, given, output = _call(*step)
            level = await self.judge(tool, given)
            worst.add(level)
            self.said.append((level, f"{tool} {given}: {self.reason}"))
            if level != "deny":
                await self.read(tool, given, output)
        return next(level for level in ("deny", "ask", "pass") if level in worst)


def _call(tool: str, argument: Any, output: Any = "") -> tuple[str, dict[str, Any], Any]:
    """A step as it is written in a table."""
    short: dict[str, tuple[str, dict[str, Any], Any]] = {
        "R": ("Read", {"file_path": argument}, output),
        "B": ("Bash", {"command": argument}, output),
        "W": ("Write", {"file_path": argument, "content": output}, ""),
        "F": ("WebFetch", {"url": argument, "prompt": "what does it say?"}, output),
    }
    return short.get(tool, (tool, argument, output))
