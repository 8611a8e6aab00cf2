"""The arguments of a command: options apart from the rest, and the values that options are given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hookline.core.shell.shell_line import SimpleCommand

LATER = "\ue002"
"""Begins a word that is known only when the line runs."""


class Arguments(NamedTuple):
    """The arguments of a command, options apart; a word that is known only later is `LATER`."""

    given: list[str]
    options: list[str]
    values: list[str]

    def has(self, pattern: str) -> bool:
        """Whether an option looks like this."""
        return any(re.fullmatch(pattern, option) for option in self.options)


def arguments(command: SimpleCommand) -> Arguments:
    """The words after the program's name, sorted."""
    given: list[str] = []
    options: list[str] = []
    values: list[str] = []
    only_words = False
    unknown = frozenset(command.unknown)
    for index, word in enumerate(command.words[1:], 1):
        if index in unknown:
            given.append(LATER + word)
        elif only_words or not word.startswith("-") or word == "-":
            given.append(word)
        elif word == "--":
            only_words = True
        else:
            options.append(word)
            values.extend(_attached(word))
    return Arguments(given, options, values)


def _attached(option: str) -> Iterable[str]:
    """The value in `--output=x` or `-C/etc`."""
    if "=" in option:
        yield option.split("=", 1)[1]
    elif not option.startswith("--") and len(option) > 2 and ("/" in option[2:] or "~" in option[2:]):
        yield option[2:]


def value_of(command: SimpleCommand, *names: str) -> list[str]:
    """The values of an option that is written as `-o x`, `-ox` or `--output=x`."""
    found = []
    unknown = frozenset(command.unknown)
    for index, word in enumerate(command.words[1:], 1):
        for name in names:
            if word == name and index + 1 < len(command.words):
                found.append((LATER if index + 1 in unknown else "") + command.words[index + 1])
            elif name.startswith("--") and word.startswith(name + "="):
                found.append(word[len(name) + 1 :])
            elif not name.startswith("--") and word.startswith(name) and len(word) > len(name):
                found.append(word[len(name) :])
    return found
