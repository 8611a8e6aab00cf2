"""What is wrong with a file: where, what, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from hookline.display import one_line

Severity = Literal["error", "warning", "note"]


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a file.

    `error`: something written there does not count · `warning`: it counts, but hardly as meant · `note`: good to know.
    """

    where: str
    message: str
    severity: Severity = "error"
    line: int = 0
    column: int = 0
    """Where in the file that is, from 1; 0 where it is not known."""

    def __str__(self) -> str:
        return one_line(f"{self.where}: {self.message}")


def shown(value: Any, most: int = 60) -> str:
    """A value as the user wrote it, in backticks and not too long."""
    try:
        text = msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = type(value).__name__
    return f"`{one_line(text, most)}`"


def is_misspelling(word: str, known: Iterable[str]) -> bool:
    """Whether a word is so near a known one that it can hardly mean anything else: `timout`, `on_failure`."""
    from difflib import get_close_matches

    plain = word.lower().replace("_", "").replace("-", "")
    return bool(get_close_matches(plain, [name.lower() for name in known], n=1, cutoff=_NEARLY))


_NEARLY = 0.8
