"""Tools of MCP servers, which every host names in its own way; here they are `mcp__server__tool`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

McpReader = Callable[[str, Mapping[str, Any]], tuple[str, ...]]
"""Our names for a tool, from the host's name for it and its payload: none if the tool is the host's own."""

UNKNOWN_SERVER = "unknown"
"""The server of a tool whose host does not say where it comes from."""


def mcp_name(server: Any, tool: Any) -> str:
    """The name that rules and matchers use."""
    return f"mcp__{server}__{tool}"


def joined_by(separator: str) -> McpReader:
    """Names of the form server, separator, tool; one that can be cut in several places is read in every way."""

    def read(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
        parts = name.split(separator)
        cuts = range(1, len(parts))
        return tuple(mcp_name(separator.join(parts[:cut]), separator.join(parts[cut:])) for cut in cuts)

    return read
