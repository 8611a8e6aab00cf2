"""What reading a shell line has found so far."""

from __future__ import annotations

from typing import NamedTuple

from hookline.core.shell.shell_line import Redirect, SimpleCommand


class ParseState(NamedTuple):
    """What reading has found so far; shared by a line and everything nested in it."""

    commands: list[SimpleCommand]
    undecidable: dict[str, None]
    notes: dict[str, None]
    code: dict[str, None]
    scopes: list[int]
    evaluates: dict[str, None]


class HereDocument(NamedTuple):
    """A here-document that has been announced and whose text is still to come."""

    delimiter: str
    quoted: bool
    strip_tabs: bool


class Draft:
    """A simple command while its words are being read."""

    end: int

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.words: list[tuple[str, bool]] = []
        self.globs: list[int] = []
        self.assignments: list[tuple[str, str]] = []
        self.constants: dict[str, str] = {}
        self.redirects: list[Redirect] = []
        self.input: str | None = None
        self.literal = True
        self.after = ""
        self.scope: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing has been read yet."""
        return not (self.words or self.assignments or self.redirects)
