"""Where a key path such as `hooks.PreToolUse[0].timeout` stands in a JSON file: line and column. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)')
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def keys_of(path: str) -> tuple[str | int, ...]:
    """The steps of a key path: `hooks.Stop[0]` is `("hooks", "Stop", 0)`."""
    return tuple(int(found[1]) if found[1] else found[2] for found in _STEP.finditer(path))


def position(text: str, keys: Sequence[str | int]) -> tuple[int, int] | None:
    """Line and column, from 1, of the value that the keys lead to, or of the last one on the way that is there."""
    at = _Walk(text).find(keys)
    if at is None:
        return None
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


class _Walk:
    """Goes through the tokens of a text and notes where each step of the way begins."""

    def __init__(self, text: str) -> None:
        self._tokens = [(found.start(1), found[1]) for found in _TOKEN.finditer(text)]
        self._at = 0

    def find(self, keys: Sequence[str | int]) -> int | None:
        """The offset of the deepest step that is there."""
        best: int | None = None
        for key in keys:
            start = self._enter(key)
            if start is None:
                break
            best = start
        return best

    def _enter(self, key: str | int) -> int | None:
        """Go to a key's value or an item; the offset of the key, or of the item."""
        opening = "{" if isinstance(key, str) else "["
        if self._token() != opening:
            return None
        self._at += 1
        index = 0
        while self._token() not in ("}", "]", ""):
            start, name = self._tokens[self._at]
            if isinstance(key, str):
                self._at += 2  # the key and its colon
                if name[1:-1] == key:
                    return start
            elif index == key:
                return start
            self._skip()
            index += 1
            if self._token() == ",":
                self._at += 1
        return None

    def _token(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _skip(self) -> None:
        """Past one value."""
        depth = 0
        while self._at < len(self._tokens):
            token = self._token()
            depth += (token in ("{", "[")) - (token in ("}", "]"))
            self._at += 1
            if depth <= 0:
                return
