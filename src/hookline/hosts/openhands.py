"""OpenHands CLI: Claude Code's nesting, `decision: deny` in answers; a project's file replaces the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import mcp_name, read_row


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """It does not say which server a tool belongs to."""
    given = fields.get("tool_input")
    kind = given.get("kind") if isinstance(given, dict) else None
    return (mcp_name("unknown", name),) if kind == "MCPToolAction" else ()


OPENHANDS = read_row("openhands", mcp=_mcp)
