"""May the agent do this? Rules, modes and one pure function that decides."""

from hookline.guards.permissions.decide import Permission, decide
from hookline.guards.permissions.file_access import Mode, edits_only
from hookline.guards.permissions.readonly_commands import reads_only
from hookline.guards.permissions.rules import Rules, apply, read_rules, removed_tools, suggestions

__all__ = [
    "Mode", "Permission", "Rules", "apply", "decide", "edits_only", "read_rules", "reads_only", "removed_tools",
    "suggestions",
]  # fmt: skip
