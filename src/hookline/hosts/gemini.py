"""Gemini CLI: its own event names, timeouts in milliseconds, `decision: deny` for everything.

After a tool call a deny takes the place of the output: what the tool returned does not reach the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import mcp_name, read_row


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    server = fields.get("mcp_context")
    return (mcp_name(server.get("server_name"), server.get("tool_name")),) if isinstance(server, dict) else ()


GEMINI = read_row("gemini", mcp=_mcp)
