"""What looking inside a command yields: what it runs in turn, and what cannot be told about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Words = list[tuple[str, bool]]
"""The words of a command, and whether each is known."""


class NestedCommand(NamedTuple):
    """One command or script that a wrapper runs."""

    via: str
    words: Words
    script: str | None = None
    stdin: str | None = None
    shell: str = "bash"


class Analysis(NamedTuple):
    """What a command runs in turn, and what cannot be told about it."""

    runs: tuple[NestedCommand, ...] = ()
    undecidable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


class Invocation(NamedTuple):
    """What a command is given: its words, the text it reads, and what feeds it: a pipe, a file or nothing."""

    words: Words
    stdin: str | None = None
    fed: str = ""

    @property
    def texts(self) -> list[str]:
        """The words after the name."""
        return [word for word, _ in self.words[1:]]


Look = Callable[[str, Words, str | None], Analysis]
"""Looks inside one program: given its name, its words and the text it reads."""


def script(via: str, words: Words, shell: str = "bash") -> Analysis:
    """A script handed over as text, several words joined by spaces."""
    if not all(known for _, known in words):
        return Analysis(undecidable=(f"the text that `{via}` runs is known only when it runs",))
    return Analysis((NestedCommand(via, [], " ".join(word for word, _ in words), shell=shell),))
