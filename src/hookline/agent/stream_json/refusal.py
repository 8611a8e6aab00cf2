"""A run that cannot begin, told to the host that drives it: as the answer to what it asks first.

Without it a host would see no more than a process that ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import msgspec

from hookline.core.wire.json_text import read_object


def refuse(problem: str, lines: Iterable[bytes], write: Callable[[bytes], None]) -> None:
    """Answer the first request, or the first prompt, that comes in on `lines` with `problem`."""
    for line in lines:
        asked = read_object(line) or {}
        if asked.get("type") == "control_request":
            response = {"subtype": "error", "request_id": asked.get("request_id"), "error": problem}
            return write(_line({"type": "control_response", "response": response}))
        if asked.get("type") == "user":
            return write(_line(_result(problem)))
    return None


def _result(problem: str) -> dict[str, Any]:
    nothing = {"duration_ms": 0, "duration_api_ms": 0, "num_turns": 0, "total_cost_usd": 0, "permission_denials": []}
    ended = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": [problem]}
    return {**ended, **nothing, "terminal_reason": "error", "uuid": str(uuid4()), "session_id": str(uuid4())}


def _line(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode(message) + b"\n"
