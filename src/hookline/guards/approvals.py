"""Approving safe commands without a prompt (seeds/004 US-4)."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from hookline.core.engine import Context
from hookline.core.hooks import Hook, make_hook
from hookline.core.hooks.condition import PathContext, Rule, covers, parse_rule
from hookline.core.shell import parse_line
from hookline.core.shell.targets import join, placed
from hookline.errors import HookError
from hookline.events import PermissionRequest
from hookline.guards import sandboxing
from hookline.guards.off_loop import run_off_loop
from hookline.guards.permissions.readonly_commands import find_unknown_options, reads_only, runs_something
from hookline.replies import Reply, allow, deny

Otherwise = Literal["block", "leave"]
SAFE = (
    "ls *", "pwd", "cat *", "head *", "tail *", "wc *", "echo *", "which *", "git status *", "git diff *", "git log *",
)  # fmt: skip
"""A safe-list to start from: commands that only look."""
_RULE = re.compile(r"(?:[A-Z]|mcp__)(?:[^(]*\(.*|[^( ]*)", re.DOTALL)


def auto(safe: Iterable[str] = SAFE, *, otherwise: Otherwise = "leave", name: str = "approvals.auto") -> Hook:
    """Approve calls that are on the list, part by part; block the rest, or leave it to the user.

    An entry is a command pattern (`ls *`) or a rule (`Read(src/**)`, `mcp__docs__search`). A line is approved only when
    every command in it is on the list and nothing in it is left to expansion; `sort *` is sorting, and an option of
    `sort` that may do more is approved only by an entry that spells it out. Without a list of your own, what
    only reads is approved, and only inside the project. A line that a guard has confined is judged by what it runs.
    """
    if otherwise not in ("block", "leave"):
        raise HookError(f"otherwise must be `block` or `leave`, got `{otherwise}`")
    rules = [parse_rule(text if _RULE.fullmatch(text) else f"Bash({text})") for text in safe]

    async def judge(event: PermissionRequest, ctx: Context) -> Reply | None:
        given = sandboxing.without_confinement(event)
        here, line = event.cwd or str(Path.cwd()), str(given.get("command", ""))

        def listed() -> Rule | None:
            place = PathContext(event.cwd or "/", event.cwd or "/", "/")
            rule = covers(rules, event.tool_name, given, place)
            if rule is None or not line:
                return rule
            if safe is SAFE:
                project = ctx.env.get("CLAUDE_PROJECT_DIR") or here
                return rule if reads_only(line, cwd=here, dirs=[project], home=str(Path.home())) else None
            parsed = parse_line(line)
            git = (row for row in placed(parsed) if row[0].name == "git")
            unknown = any(find_unknown_options(parsed, rules))
            return None if unknown or any(runs_git_helper(part.words, bases, here) for part, bases in git) else rule

        rule = await run_off_loop([line], listed, disk=True)
        if rule is not None:
            return allow(f"`{rule.text}` is on the list of safe calls")
        return deny(f"`{event.tool_name}` call is not on the list of safe calls") if otherwise == "block" else None

    return make_hook((PermissionRequest,), judge, name=name)


def runs_git_helper(words: Sequence[str], bases: Sequence[str], cwd: str) -> bool:
    """Whether git would run something else because of the repository it runs in, or be told to use another one."""
    told = bool(words[1:2]) and words[1].startswith("-") and words[1] != "--no-pager"
    return told or not bases or any(runs_something(join(cwd, base)) for base in bases)
