"""Mistral Vibe: three points to hook into, answers in snake case, and a `strict` switch that fails closed.

It drops a user's hook that a project's has the name of, so each command has a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import read_row


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    found = re.fullmatch(r"mcp_([^.]+)\.(.+)", name)
    return (f"mcp__{found[1]}__{found[2]}",) if found else ()


VIBE = read_row("vibe", mcp=_mcp)
