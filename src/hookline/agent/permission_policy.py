"""What a session permits without asking, and who is asked about the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from hookline.agent.tools import Tool
from hookline.core.engine import Verdict
from hookline.core.hooks.tools import EDITING
from hookline.guards.permissions import Mode, Permission, Rules, apply, decide
from hookline.guards.sandboxing import TOOL, unwrapped
from hookline.replies import Decision, Reply

NO_RULES = Rules()


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """What a person is asked to permit; `reason_type` says who wants it asked (`hook`, `rule`, `mode`, …)."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str = ""
    agent_id: str | None = None
    suggestions: Sequence[Mapping[str, Any]] = ()
    reason: str = ""
    reason_type: str = "other"


CanUseTool: TypeAlias = Callable[[PermissionQuestion], Awaitable[Reply | bool | None]]
"""A function that can be asked: answers `True`, `False`, or a reply such as `deny("not today")`; `None` is no."""


def as_asked(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """The call without a confinement that a guard put around its line: rules are about the line itself."""
    found = unwrapped(str(given.get("command", ""))) if tool.name == TOOL else None
    return given if found is None else {**given, "command": found[1]}


@dataclass
class PermissionPolicy:
    """What may be done without asking, and who to ask; changed by hooks and hosts while the session runs."""

    rules: Rules = NO_RULES
    mode: Mode = Mode.DEFAULT
    dirs: tuple[str, ...] = ()
    can_use_tool: CanUseTool | None = None
    granted: Rules = NO_RULES
    """What skills allow while the user's prompt is worked on."""

    def decide(
        self, tool: Tool, given: dict[str, Any], verdict: Verdict | None = None, *, cwd: str, project_dir: str
    ) -> Permission:
        """What rules, mode and hooks say to a call."""
        decision = verdict.decision if verdict is not None else Decision.PASS
        given = as_asked(tool, given)
        return decide(
            tool.name,
            given,
            rules=self.rules | self.granted,
            mode=self.mode,
            hook_decision=None if decision is Decision.PASS else str(decision),
            hook_reason=verdict.reply.reason if verdict is not None else "",
            read_only=tool.is_read_only(given),
            edits=tool.name in EDITING,
            within_session=tool.within_session,
            cwd=cwd,
            dirs=(project_dir, *self.dirs),
            home=str(Path.home()),
            project_dir=project_dir,
        )

    def update(self, updates: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Change rules, mode and folders as a hook or a host says; what made no sense."""
        applied = apply(updates, self.rules, self.mode, self.dirs)
        self.rules, self.mode, self.dirs = applied.rules, applied.mode, applied.dirs
        return applied.problems
