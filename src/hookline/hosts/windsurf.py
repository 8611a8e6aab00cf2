"""Windsurf: an action for each tool, with the tool's input in `tool_info`."""

from __future__ import annotations

from typing import Any

from hookline.hosts.host import read_row

_ACTIONS = {"run_command": ("Bash", {"command_line": "command"}), "write_code": ("Write", {}),
            "read_code": ("Read", {}), "mcp_tool_use": ("", {})}  # fmt: skip


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """The action's name says which tool it is; `tool_info` is its input."""
    action = str(payload.get("agent_action_name", ""))
    found = payload.pop("tool_info", None)
    info: dict[str, Any] = found if isinstance(found, dict) else {}
    payload["hook_event_name"] = action
    if "prompt" in action:
        return {**payload, "prompt": info.get("user_prompt")}
    name, fields = _ACTIONS.get(action.partition("_")[2], ("", {}))
    given = {fields.get(key, key): value for key, value in info.items()}
    tool = name or f"mcp__{info.get('mcp_server_name')}__{info.get('mcp_tool_name')}"
    return {**payload, "tool_name": tool, "tool_input": given, "cwd": info.get("cwd")}


WINDSURF = read_row("windsurf", unwrap=_unwrap)
