"""Whether a program that is known to read is called in a way that is known: a rule for `sort *` is meant for sorting.

The rows are those of `readonly_commands`; here nothing is said about files, and other programs are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hookline.core.hooks.condition import Rule, RuleMatch, part_caught
from hookline.core.shell import ShellLine, SimpleCommand
from hookline.core.shell.programs.table import values
from hookline.guards.permissions.readonly_commands import find_files, match_options, row_of

_AWK_RUNS = re.compile(r"system|getline|[|>@]")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")


def find_unknown_options(line: ShellLine, rules: Sequence[Rule]) -> Iterator[str]:
    """What in a line may do more than its program is known for, unless a rule spells that option out."""
    for part in line.commands:
        if any(_NETWORK.match(each.target) for each in part.redirects):
            yield f"`{part.text[:200]}` reads from the network"
        elif not _is_understood(part) and not any(_spells_out(rule, part) for rule in rules):
            yield f"`{part.text[:200]}` may do more than read; list it with its options to allow it"


def _spells_out(rule: Rule, part: SimpleCommand) -> bool:
    pattern = rule.pattern or ""
    return " -" in pattern and part_caught(pattern, part) is RuleMatch.YES


def _is_understood(part: SimpleCommand) -> bool:
    """Whether a reading program is called in a known way; other programs are not judged here."""
    words = list(part.words[1:])
    if part.name == "find":
        return find_files(list(_without_commands(words)) if part.wraps else words) is not None
    if values("writes").get(part.name) == "awk":
        return "-f" not in words and not any(_AWK_RUNS.search(word) for word in words)
    row, words = row_of(part.name, words)
    return row is None or match_options(part.name, words, row) is not None


def _without_commands(words: list[str]) -> Iterator[str]:
    """The words of `find` without the commands it runs, which are looked at by themselves."""
    inside = False
    for word in words:
        inside = inside or word in ("-exec", "-execdir", "-ok", "-okdir")
        if not inside:
            yield word
        inside = inside and word not in (";", "+")
