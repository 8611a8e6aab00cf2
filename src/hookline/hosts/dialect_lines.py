"""Hosts that send an event as a line of JSON, in one of our dialects, and want a line back."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from hookline.core.wire.dialects import DIALECTS, detect, message_response
from hookline.core.wire.json_text import parse_object
from hookline.errors import EventError, HooklineError
from hookline.events import Event
from hookline.hosts.answer import refusal
from hookline.replies import Reply

MOST_BYTES = 50 * 1024 * 1024
"""How long a line may be."""


class LineCodec:
    """Reads a line in the dialect it is written in, or in the one that is named, and answers in the same.

    `unreadable` counts the lines that were refused.
    """

    def __init__(self, dialect: str | None = None) -> None:
        self._dialect = dialect
        self._spoken = dialect or "claude"
        self.unreadable: int = 0

    def decode(self, line: bytes) -> Event:
        """The event of a line."""
        if len(line) > MOST_BYTES:
            raise EventError(f"a line of more than {MOST_BYTES:,} bytes")
        payload = parse_object(line)
        self._spoken = self._dialect or detect(payload)
        return DIALECTS[self._spoken].decode_event(payload)

    def encode(self, reply: Reply, event: Event) -> bytes:
        """The answer in the dialect of the line that was read last."""
        return DIALECTS[self._spoken].encode_reply(reply, event)

    def refuse(self, problem: BaseException, line: bytes, event: Event | None) -> bytes:
        """An answer that blocks in every dialect: what cannot be judged is not let through."""
        self.unreadable += 1
        reason = str(problem) if isinstance(problem, HooklineError) else refusal(problem, event)
        return refused(line, reason)


def refused(line: bytes, reason: str) -> bytes:
    """A block in the words of every dialect; one of type `hook_response` to a `hook_event`."""
    asked: dict[str, Any] = {}
    with suppress(HooklineError):
        asked = parse_object(line) if len(line) <= MOST_BYTES else {}
    if asked.get("type") != "hook_event":
        words = {"decision": "block", "reason": reason, "continue_execution": False, "stop_reason": reason}
        return msgspec.json.encode({"error": reason, **words})
    call = asked.get("tool_use_id")
    said = message_response(
        tool_use_id=call if isinstance(call, str) else "", goes_on=False, decision="block", reason=reason
    )
    return msgspec.json.encode({**said, "error": reason})
