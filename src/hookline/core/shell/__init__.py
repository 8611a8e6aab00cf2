"""What would this shell line run, and what would it write? Answered by reading it, never by running it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from hookline.core.shell.shell_line import ParseState, Redirect, ShellLine, SimpleCommand, Undecidable

if TYPE_CHECKING:  # the reader itself is imported with the first line: most runs have none to read
    from hookline.core.shell.targets import Writes

__all__ = ["Redirect", "ShellLine", "SimpleCommand", "parse_line", "writes"]


@lru_cache(maxsize=2048)
def parse_line(text: str) -> ShellLine:
    """Every command that a shell line may run, seen through quoting, wrappers, substitutions and nested shells.

    Never raises: what cannot be read is named in `undecidable`, and then the list of commands may be incomplete.
    """
    from hookline.core.shell.parser import Parser

    found = ParseState()
    try:
        Parser(text, found).read()
    except Undecidable as stopped:
        found.undecidable[str(stopped)] = None
    return ShellLine(
        tuple(found.commands), tuple(found.undecidable), tuple(found.notes), tuple(found.code), tuple(found.evaluates),
    )  # fmt: skip


@lru_cache(maxsize=2048)
def writes(text: str) -> Writes:
    """The files that a shell line writes, creates, changes or removes, as far as its text tells.

    Relative targets are relative to where the line starts; an earlier `cd` in the line is already applied.
    """
    from hookline.core.shell.targets import written

    return written(parse_line(text))
