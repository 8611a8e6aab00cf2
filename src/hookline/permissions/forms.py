"""Whether a program that is known to read is called in a way that is known: whoever allows `sort *` means sorting.

The tables are those of `reading`; here nothing is said about files, and other programs are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hookline.hooks.condition import Catch, Rule, part_caught
from hookline.permissions.git_readers import BEFORE, GIT, asks_gpg
from hookline.permissions.options import take
from hookline.permissions.readers import READERS, filters_only, find_files, shows_date
from hookline.shell import ShellLine, SimpleCommand

_AWK = frozenset({"awk", "gawk", "mawk", "nawk"})
_AWK_RUNS = re.compile(r"system|getline|[|>@]")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")


def strange_forms(line: ShellLine, rules: Sequence[Rule]) -> Iterator[str]:
    """What in a line may do more than its program is known for, unless a rule spells that option out."""
    for part in line.commands:
        if any(_NETWORK.match(each.target) for each in part.redirects):
            yield f"`{part.text[:200]}` reads from the network"
        elif not _is_understood(part) and not any(_spells_out(rule, part) for rule in rules):
            yield f"`{part.text[:200]}` may do more than read; list it with its options to allow it"


def _spells_out(rule: Rule, part: SimpleCommand) -> bool:
    pattern = rule.pattern or ""
    return " -" in pattern and part_caught(pattern, part) is Catch.YES


def _is_understood(part: SimpleCommand) -> bool:
    """Whether a reading program is called in a known way; any other program is somebody else's matter."""
    words = list(part.words[1:])
    if part.name == "find":
        return find_files(list(_without_commands(words)) if part.wraps else words) is not None
    if part.name in _AWK:
        return "-f" not in words and not any(_AWK_RUNS.search(word) for word in words)
    if part.name == "git":
        return _git_is_understood(words)
    row = READERS.get(part.name)
    if row is None:
        return True
    taken = take(words, row)
    if taken is None:
        return False
    if part.name == "date":
        return shows_date(taken.operands)
    return part.name != "jq" or filters_only(taken.operands)


def _without_commands(words: list[str]) -> Iterator[str]:
    """The words of `find` without the commands it runs, which are looked at by themselves."""
    inside = False
    for word in words:
        inside = inside or word in ("-exec", "-execdir", "-ok", "-okdir")
        if not inside:
            yield word
        inside = inside and word not in (";", "+")


def _git_is_understood(words: list[str]) -> bool:
    while words and words[0] in BEFORE:
        words = words[1:]
    row = GIT.get(words[0]) if words else None
    if row is None:
        return True
    taken = take(words[1:], row)
    return taken is not None and not asks_gpg(taken.options)
