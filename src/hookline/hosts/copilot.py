"""Copilot CLI: with PascalCase event names it sends and obeys what Claude Code does, mostly.

Context goes into the prompt itself: that is the only thing of a prompt's answer that the model reads.
"""

from __future__ import annotations

from typing import Any

from hookline.hosts.host import read_row


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """PermissionRequest alone calls its name `hookName`, whatever the configuration says."""
    if "hookName" in payload:
        payload.setdefault("hook_event_name", payload.pop("hookName"))
    return payload


COPILOT = read_row("copilot", unwrap=_unwrap)
