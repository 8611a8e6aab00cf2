"""Approving safe commands without a prompt (seeds/004 US-4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hookline.errors import HookError
from hookline.events import PermissionRequest
from hookline.hooks import Hook, make_hook
from hookline.hooks.condition import Place, covers, parse_rule
from hookline.replies import Reply, allow, deny

Otherwise = Literal["block", "leave"]
SAFE = (
    "ls *",
    "pwd",
    "cat *",
    "head *",
    "tail *",
    "wc *",
    "echo *",
    "which *",
    "git status *",
    "git diff *",
    "git log *",
)
"""A safe-list to start from: commands that only look."""


def auto(safe: Iterable[str] = SAFE, *, otherwise: Otherwise = "leave", name: str = "approvals.auto") -> Hook:
    """Approve calls that are on the list, part by part; block the rest, or leave it to the user.

    An entry is a command pattern (`ls *`) or a rule (`Read(src/**)`, `mcp__docs__search`). A line is approved only when
    every command in it is on the list and nothing in it is left to expansion.
    """
    if otherwise not in ("block", "leave"):
        raise HookError(f"otherwise must be `block` or `leave`, got `{otherwise}`")
    rules = [parse_rule(text if _is_rule(text) else f"Bash({text})") for text in safe]

    async def judge(event: PermissionRequest) -> Reply | None:
        place = Place(event.cwd or "/", event.cwd or "/", "/")
        rule = covers(rules, event.tool_name, event.tool_input, place)
        if rule is not None:
            return allow(f"`{rule.text}` is on the list of safe calls")
        return deny(f"`{event.tool_name}` call is not on the list of safe calls") if otherwise == "block" else None

    return make_hook((PermissionRequest,), judge, name=name)


def _is_rule(text: str) -> bool:
    name, opening, _ = text.partition("(")
    return bool(name) and (name[0].isupper() or name.startswith("mcp__")) and (bool(opening) or " " not in text)
