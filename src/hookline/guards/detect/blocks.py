"""Private keys that stand in a text as blocks: PEM with or without headers, OpenSSH, SSH2, PGP, PuTTY. Pure.

A block whose end is missing (the text was cut) goes on for as long as its lines look like lines of a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BEGIN = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d{1,4}:[^\n\\]{0,200}")
_PUTTY_END = re.compile(r"Private-(?:MAC|Hash): *[0-9a-fA-F]*")
_LINE = re.compile(
    r"[ \t>|│]{0,16}(?:\d{1,6}[ \t→:|]{1,4})?"  # what quotes and numbers lines
    r"(?:[A-Za-z][A-Za-z-]{1,40}: ?[^\n\\]{0,400}|[A-Za-z0-9+/=]{0,4096})[ \t,\"']{0,8}(?:\r?\n|\\r\\n|\\n|\Z)"
)
"""A line of a key: a header, a piece of base64, or nothing; its end may be written as an escape, as in JSON."""


def key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where each private key begins and ends."""
    for begin, end in ((_BEGIN, _END), (_PUTTY, _PUTTY_END)):
        reached, last_end = 0, _last(end, text)
        for found in begin.finditer(text):
            if found.start() < reached:
                continue
            closed = end.search(text, found.end()) if found.end() <= last_end else None
            reached = closed.end() if closed is not None else _open_end(text, found.end())
            yield found.start(), reached


def _last(end: re.Pattern[str], text: str) -> int:
    """Where the last end of a block begins, so that none is looked for where there is none."""
    found = -1
    for match in end.finditer(text):
        found = match.start()
    return found


def _open_end(text: str, start: int) -> int:
    at = start
    while at < len(text):
        line = _LINE.match(text, at)
        if line is None or line.end() == at:
            return at
        at = line.end()
    return at
