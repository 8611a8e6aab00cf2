"""How long an answer may be. Grok and Qwen Code drop one of more than a MiB without a word and run the tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.replies import Reply

MOST_BYTES = 500_000
"""What an answer may have at most: every host that was measured reads one of that length whole."""

_LONGEST = 20_000
"""Characters that are left of a text in an answer that is too long; escaped, they may be six times as many bytes."""


def readable(text: str) -> str:
    """A text that every host can be told: halves of characters, as in file names that are not UTF-8, are marked."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def cut(text: str) -> str:
    """The beginning of a text, and how much of it is missing."""
    text = readable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"


def legible(reply: Reply) -> Reply:
    """The reply with texts that can be written."""
    return _mapped(reply, reasons=tuple(map(readable, reply.reasons)), context=tuple(map(readable, reply.context)),
                   messages=tuple(map(readable, reply.messages)))  # fmt: skip


def shortened(reply: Reply) -> Reply:
    """The reply with every text cut; a new input stays as it is, for a part of a call is another call."""
    return _mapped(
        reply, reasons=_one(reply.reasons), context=_one(reply.context), messages=_one(reply.messages),
        keep_going_reasons=_one(reply.keep_going_reasons), output=_shorter(reply.output),
        stop_reason=None if reply.stop_reason is None else cut(reply.stop_reason),
    )  # fmt: skip


def _one(texts: tuple[str, ...]) -> tuple[str, ...]:
    return (cut("\n".join(texts)),) if texts else ()


def _shorter(output: Any) -> Any:
    """An output whose texts are cut; one with very many parts becomes a text."""
    made = _cut_inside(output)
    if made is msgspec.UNSET or len(msgspec.json.encode(made)) <= MOST_BYTES // 2:
        return made
    return cut(msgspec.json.encode(output).decode())


def _cut_inside(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        return {name: _cut_inside(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cut_inside(inner) for inner in value]
    return value


def _mapped(reply: Reply, **fields: Any) -> Reply:
    return msgspec.structs.replace(reply, **fields)
