"""Grok: Claude Code's words; it also reads Claude Code's and Cursor's hook files, so an event may arrive twice."""

from __future__ import annotations

from typing import Any

from hookline.errors import EventError
from hookline.hosts.host import read_row


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """Refuse a call of which only the beginning is there."""
    if payload.get("toolInputTruncated"):
        raise EventError("Grok: the call is too long and arrived cut; what is missing cannot be judged")
    return payload


GROK = read_row(
    "grok", unwrap=_unwrap, recognize=lambda payload: "hookEventName" in payload and "workspaceRoot" in payload
)
