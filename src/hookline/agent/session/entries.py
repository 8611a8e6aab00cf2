"""A message as a line of a transcript, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.agent.messages import Message, Reminder, User, decode_message, encode_message

__all__ = ["decode_entry", "encode_entry"]


def encode_entry(message: Message) -> dict[str, Any]:
    """A message as a line of the transcript."""
    if isinstance(message, Reminder):
        reminder = {"type": "system", "subtype": "reminder", "content": message.text}
        return {**reminder, "file": message.file} if message.file else reminder
    wire = encode_message(message)
    if isinstance(message, User):
        return {"type": "user", "message": wire, **({"isMeta": True} if message.synthetic else {})}
    usage = msgspec.to_builtins(message.usage)
    about = {
        "id": message.id,
        "type": "message",
        "model": message.model,
        "stop_reason": message.stop_reason,
        "usage": usage,
    }
    return {"type": "assistant", "message": {**about, **wire}}


def decode_entry(entry: Mapping[str, Any]) -> Message | None:
    """The message on a line; None for lines that are about something else."""
    kind, message = entry.get("type"), entry.get("message")
    if kind == "system" and entry.get("subtype") == "reminder":
        return Reminder(str(entry.get("content") or ""), str(entry.get("file") or ""))
    if kind not in {"user", "assistant"} or not isinstance(message, Mapping):
        return None
    said = decode_message({**message, "role": kind})
    return User(said.content, synthetic=True) if isinstance(said, User) and entry.get("isMeta") else said
