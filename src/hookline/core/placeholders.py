"""`${NAME}` in texts that users write: the one home of filling it in. Pure: the values are handed in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

BRACED = re.compile(r"\$\{(?P<name>\w+)\}")  # `${NAME}`
EITHER = re.compile(r"\$(?P<brace>\{)?(?P<name>\w+)(?(brace)\})")  # `${NAME}` and `$NAME`
DOTTED = re.compile(r"\$\{(?P<name>[\w.]+)\}")  # `${tool_input.command}`
WITH_DEFAULT = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")
"""`${NAME}` and `${NAME:-default}`; what has neither a value nor a default becomes nothing"""


def fill(text: str, lookup: Callable[[str], str | None], form: re.Pattern[str] = BRACED) -> str:
    """The text with its placeholders replaced; one for which `lookup` returns None stays as it was written."""

    def value(found: re.Match[str]) -> str:
        known = lookup(found["name"])
        if known is None:
            return found["default"] or "" if form is WITH_DEFAULT else found[0]
        return known

    return form.sub(value, text)


def in_every_text(value: Any, change: Callable[[str], Any]) -> Any:
    """A JSON value with every text in it changed; keys are left alone."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: in_every_text(item, change) for key, item in value.items()}
    return [in_every_text(item, change) for item in value] if isinstance(value, (list, tuple)) else value
