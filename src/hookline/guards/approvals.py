"""Approving safe commands without a prompt (seeds/004 US-4)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from hookline.engine import Context
from hookline.errors import HookError
from hookline.events import PermissionRequest
from hookline.guards import confining
from hookline.guards.paths import Fence, judged
from hookline.guards.resolve import Matches
from hookline.hooks import Hook, make_hook
from hookline.hooks.condition import Place, covers, parse_rule
from hookline.replies import Reply, allow, deny
from hookline.shell import parse_line

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
_PRINT_ONLY = frozenset({"echo", "which", "pwd"})
"""Of these, the ones whose words are not paths that they read."""


def auto(safe: Iterable[str] = SAFE, *, otherwise: Otherwise = "leave", name: str = "approvals.auto") -> Hook:
    """Approve calls that are on the list, part by part; block the rest, or leave it to the user.

    An entry is a command pattern (`ls *`) or a rule (`Read(src/**)`, `mcp__docs__search`). A line is approved only when
    every command in it is on the list and nothing in it is left to expansion. Without a list of your own, reading is
    approved inside the project only. A line that a guard has confined is judged by what it runs.
    """
    if otherwise not in ("block", "leave"):
        raise HookError(f"otherwise must be `block` or `leave`, got `{otherwise}`")
    rules = [parse_rule(text if _is_rule(text) else f"Bash({text})") for text in safe]

    async def judge(event: PermissionRequest, ctx: Context) -> Reply | None:
        given = _without_confinement(event)
        place = Place(event.cwd or "/", event.cwd or "/", "/")
        rule = covers(rules, event.tool_name, given, place)
        if rule is not None and safe is SAFE and not _stays_inside(str(given.get("command", "")), event.cwd, ctx):
            rule = None
        if rule is not None:
            return allow(f"`{rule.text}` is on the list of safe calls")
        return deny(f"`{event.tool_name}` call is not on the list of safe calls") if otherwise == "block" else None

    return make_hook((PermissionRequest,), judge, name=name)


def _without_confinement(event: PermissionRequest) -> Mapping[str, Any]:
    """The call as it was before a guard put a confinement around its line."""
    command = event.tool_input.get("command")
    found = confining.unwrapped(command) if event.tool_name == confining.TOOL and isinstance(command, str) else None
    return event.tool_input if found is None else {**event.tool_input, "command": found[1]}


def _stays_inside(line: str, cwd: str, ctx: Context) -> bool:
    """Whether everything that a line of looking commands looks at lies in the project."""
    project = ctx.env.get("CLAUDE_PROJECT_DIR") or cwd or str(Path.cwd())
    fence, matches = Fence((os.path.realpath(project),)), Matches(cwd)
    words = [word for part in parse_line(line).commands if part.name not in _PRINT_ONLY for word in part.words[1:]]
    paths = [path for word in words for path in _paths_in(word)]
    found = [each for path in paths for each in (path, *matches.of(path))]
    return not matches.exhausted and not any(judged(path, cwd, fence, write=False).problem for path in found)


def _paths_in(word: str) -> list[str]:
    """What may be a path in a word: the word itself, or what an option is given."""
    if not word.startswith("-"):
        return [word] if word else []
    return [part for part in (word.partition("=")[2], word[2:] if word[1:2] != "-" else "") if part]


def _is_rule(text: str) -> bool:
    name, opening, _ = text.partition("(")
    return bool(name) and (name[0].isupper() or name.startswith("mcp__")) and (bool(opening) or " " not in text)
