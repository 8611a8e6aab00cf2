"""Edits of a text that know nothing of byte order marks and line ends: both stay as they are. Pure."""

from __future__ import annotations

from collections.abc import Callable

_MARK = "\ufeff"


def keep_form(text: str, edit: Callable[[str], str]) -> str:
    """The edited text, with the mark it began with and the line ends it had; where they are mixed, ours are plain."""
    mark = _MARK if text.startswith(_MARK) else ""
    body = text.removeprefix(_MARK)
    windows = "\r\n" in body and body.count("\r\n") == body.count("\n")
    made = edit(body.replace("\r\n", "\n") if windows else body)
    return mark + (made.replace("\n", "\r\n") if windows else made)


def without_mark(text: str) -> str:
    """The text as parsers want it."""
    return text.removeprefix(_MARK)
