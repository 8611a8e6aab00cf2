"""Lines that hold each other: each names the hash of the one before, so that no edit goes unnoticed. Pure.

A line is a JSON object whose last key is `hash`, over all bytes before it. `seq` counts from 1 across rotated files;
`prev` is the hash of the line before. With a key the hash is an HMAC, which somebody without the key cannot redo.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

START = "0" * 64
_TAIL = re.compile(rb',"hash":"([0-9a-f]{64})"\}$')


class Link(msgspec.Struct, frozen=True):
    """Where the chain stands: the last line's number and hash."""

    seq: int = 0
    hash: str = START


class Break(msgspec.Struct, frozen=True):
    """Where the chain does not hold, and what is wrong there."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}"


def digest(body: bytes, key: bytes | None) -> str:
    """The hash of a line's bytes before its own hash."""
    if key is not None:
        return hmac.new(key, body, hashlib.sha256).hexdigest()
    return hashlib.sha256(body).hexdigest()


def linked(record: dict[str, Any], last: Link, key: bytes | None = None) -> tuple[bytes, Link]:
    """The next line of the chain, with its newline, and where the chain stands then."""
    seq = last.seq + 1
    body = msgspec.json.encode({"seq": seq, "prev": last.hash, **record})[:-1]
    hashed = digest(body, key)
    return body + b',"hash":"' + hashed.encode() + b'"}\n', Link(seq, hashed)


def link_of(line: bytes) -> Link | None:
    """Where the chain stood after `line`, or `None` if it is no line of a chain."""
    found = _TAIL.search(line.rstrip(b"\n"))
    if not found:
        return None
    try:
        seq = msgspec.json.decode(line, type=_Seq).seq
    except msgspec.DecodeError:
        return None
    return Link(seq, found.group(1).decode())


class _Seq(msgspec.Struct):
    seq: int
    prev: str = ""


def verify_lines(file: str, lines: Iterable[bytes], start: Link, key: bytes | None = None) -> Iterator[Link | Break]:
    """Follow the chain through the lines of one file: the link after each, and a break where it does not hold."""
    last = start
    for number, line in enumerate(lines, 1):
        found = _checked(line, last, key)
        if isinstance(found, str):
            yield Break(file, number, found)
            last = link_of(line) or Link(last.seq + 1, "")
            continue
        last = found
        yield found


def _checked(line: bytes, last: Link, key: bytes | None) -> Link | str:
    """The link after a good line, or what is wrong with it."""
    if not line.endswith(b"\n"):
        return "the line is torn: it does not end"
    stripped = line[:-1]
    link = link_of(stripped)
    if link is None:
        return "the line was changed: it is no record of this log"
    body = stripped[: _TAIL.search(stripped).start()]  # type: ignore[union-attr]
    if not hmac.compare_digest(digest(body, key), link.hash):
        return f"the line was changed: record {link.seq} does not match its hash"
    previous = msgspec.json.decode(stripped, type=_Seq).prev
    if link.seq != last.seq + 1:
        return f"record {last.seq + 1} is missing or out of order: found record {link.seq}"
    if previous != last.hash:
        return f"record {link.seq} does not follow the one before it: a line was changed, removed or replaced"
    return link
