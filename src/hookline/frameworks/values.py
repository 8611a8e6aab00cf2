"""What frameworks hand around, as plain JSON values and as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.events.frozen import FrozenDict, freeze

_PLAIN = (str, int, float, bool, type(None))
_EXACTLY_PLAIN = frozenset(_PLAIN)


def plain(value: Any) -> Any:
    """The value as JSON has it: models and dataclasses become objects, what has no JSON form becomes its text."""
    if type(value) is dict:  # as most often
        return {
            key if type(key) is str else str(key): item if type(item) in _EXACTLY_PLAIN else plain(item)
            for key, item in value.items()
        }
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return plain(dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str(value)


def plain_input(arguments: Any) -> dict[str, Any]:
    """The arguments of a call as JSON has them, as an event keeps them, unchangeable."""
    if type(arguments) is dict:
        for key, item in arguments.items():
            if type(item) not in _EXACTLY_PLAIN or type(key) is not str:
                break
        else:  # as most often
            return FrozenDict(arguments)
    return freeze(plain(arguments))


def text_of(value: Any) -> str:
    """The value as a model would read it: texts as they are, the texts of content blocks, else JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value:
        texts = [_block_text(block) for block in value]
        if all(text is not None for text in texts):
            return "\n".join(text for text in texts if text is not None)
    return msgspec.json.encode(plain(value)).decode()


def _block_text(block: Any) -> str | None:
    """The text of a content block, `{"type": "text", "text": …}` and its relatives."""
    text = block.get("text") if isinstance(block, Mapping) else getattr(block, "text", None)
    return text if isinstance(text, str) else block if isinstance(block, str) else None
