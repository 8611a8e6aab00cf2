"""What rules know of tools: older names, the argument that a pattern is held against, who edits files, who reads."""

from __future__ import annotations

import msgspec


class ToolArgument(msgspec.Struct, frozen=True):
    """Which argument of a tool a pattern is held against, and how."""

    name: str
    kind: str


ALIASES = {"Task": "Agent"}
"""Older names of tools; a rule may use either."""
OTHER_NAMES = ALIASES | {name: older for older, name in ALIASES.items()} | {"Monitor": "Bash", "Workflow": "Agent"}
"""The other name of a tool that has two. `Monitor` runs a shell line, `Workflow` starts agents: hooks on `Bash` and
`Agent` are asked about them."""

ARGUMENTS: dict[str, ToolArgument] = {
    "Bash": ToolArgument("command", "command"),
    "Monitor": ToolArgument("command", "command"),
    "Read": ToolArgument("file_path", "path"),
    "Write": ToolArgument("file_path", "path"),
    "Edit": ToolArgument("file_path", "path"),
    "MultiEdit": ToolArgument("file_path", "path"),
    "NotebookEdit": ToolArgument("notebook_path", "path"),
    "NotebookRead": ToolArgument("notebook_path", "path"),
    "Glob": ToolArgument("path", "folder"),
    "Grep": ToolArgument("path", "folder"),
    "LS": ToolArgument("path", "folder"),
    "WebFetch": ToolArgument("url", "domain"),
    "Agent": ToolArgument("subagent_type", "name"),
    "Skill": ToolArgument("skill", "name"),
}
"""One row per tool whose rules may have a pattern. A `name` counts in permission rules only, never in an `if`."""

CLAUDE_TOOLS = (
    "Agent", "AskUserQuestion", "Bash", "BashOutput", "CronCreate", "CronDelete", "CronList", "DeferredToolPlaceholder",
    "Edit", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "KillShell", "LS", "LSP",
    "ListAgents", "Monitor", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "ReportFindings", "ScheduleWakeup",
    "SendMessage", "Skill", "SlashCommand", "StructuredOutput", "Task", "TaskCreate", "TaskGet", "TaskList",
    "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
)  # fmt: skip
"""Claude Code's own tools; MCP servers bring theirs."""

EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
READING = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"})
GROUPS = {"Edit": EDITING, "Read": READING}
"""In permission rules a path pattern for `Edit` (or `Read`) speaks for every tool that edits (or reads) files."""


def canonical(tool_name: str) -> str:
    """A tool's own name for any name it may be called by."""
    return ALIASES.get(tool_name, tool_name)
