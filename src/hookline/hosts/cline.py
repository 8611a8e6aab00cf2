"""Cline: one executable per event, and no reply that refuses one call.

`cancel` ends the whole run, and the model never learns why. So a command that is refused is replaced by one that says
so and fails; any other call that is refused does end the run. The binary is named in its row, as its launcher leaves
a daemon behind that the binary alone does not need.
"""

from __future__ import annotations

from typing import Any

from hookline.hosts.host import read_row

_NAMES = {"tool_call": "PreToolUse", "tool_result": "PostToolUse", "agent_start": "TaskStart",
          "agent_resume": "TaskResume", "agent_abort": "TaskCancel", "agent_end": "TaskComplete",
          "agent_error": "TaskError", "prompt_submit": "UserPromptSubmit",
          "session_shutdown": "SessionShutdown"}  # fmt: skip


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """Bring the call out of `tool_call` or `tool_result`, and the session and its folder to where others have them."""
    call = payload.pop("tool_call", None) or payload.pop("tool_result", None)
    if isinstance(call, dict):
        payload |= {"tool_name": call.get("name"), "tool_input": call.get("input"), "tool_use_id": call.get("id"),
                    "tool_response": call.get("output"), "duration_ms": call.get("durationMs")}  # fmt: skip
    roots = payload.get("workspaceRoots")
    if isinstance(roots, list) and roots:
        payload["cwd"] = roots[0]
    submitted = payload.get("userPromptSubmit")
    if isinstance(submitted, dict):
        payload["prompt"] = submitted.get("prompt")
    turn = payload.get("turn")
    if isinstance(turn, dict):
        payload["last_assistant_message"] = turn.get("outputText")
    payload["hook_event_name"] = _NAMES.get(payload.get("hookName", ""), payload.get("hookName"))
    return payload


CLINE = read_row("cline", unwrap=_unwrap)
