"""Cursor: it names the project's folders, and no working folder."""

from __future__ import annotations

from typing import Any

from hookline.hosts.host import read_row


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    roots = payload.get("workspace_roots")
    if isinstance(roots, list) and roots:
        payload.setdefault("cwd", roots[0])
    return payload


CURSOR = read_row("cursor", unwrap=_unwrap)
