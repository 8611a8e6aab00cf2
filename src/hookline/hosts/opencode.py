"""opencode: a plugin in JavaScript (`rows/opencode.js`), which asks Hookline and throws what it refuses.

A proof gives it time: it installs its plugins' packages first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import read_row


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """A plugin's hook gets `input` and `output`; what is to be judged is in one or the other."""
    given, made = payload.pop("input", None), payload.pop("output", None)
    given, made = given if isinstance(given, dict) else {}, made if isinstance(made, dict) else {}
    parts = made.get("parts")
    texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else None
    found = {
        "session_id": given.get("sessionID"),
        "tool_name": given.get("tool"),
        "tool_use_id": given.get("callID"),
        "tool_input": given.get("args") or made.get("args"),
        "tool_response": made.get("output"),
        "prompt": None if texts is None else "\n".join(texts),
        "mcp_servers": payload.pop("servers", None),
    }
    return {**payload, **{name: value for name, value in found.items() if value is not None}}


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """A tool's name begins with its server's, signs replaced; the plugin knows the servers."""
    given = fields.get("mcp_servers")
    servers = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    starts = [(server, re.sub(r"[^a-zA-Z0-9_-]", "_", server) + "_") for server in servers]
    return tuple(f"mcp__{server}__{name.removeprefix(start)}" for server, start in starts if name.startswith(start))


OPENCODE = read_row("opencode", unwrap=_unwrap, mcp=_mcp)
