"""Lines that hold each other: each names the hash of the one before, so that no edit goes unnoticed. Pure.

A line is a JSON object whose last key is `hash`, over all bytes before it. `seq` counts from 1 across rotated files;
`prev` is the hash of the line before. With a key the hash is an HMAC, which cannot be computed without the key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

START = "0" * 64
RESERVED = frozenset({"seq", "prev", "hash"})
_TAIL = re.compile(rb',"hash":"([0-9a-f]{64})"\}\Z')


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


class _Place(msgspec.Struct):
    seq: int
    prev: str


_place = msgspec.json.Decoder(_Place)


def digest(body: bytes, key: bytes | None) -> str:
    """The hash of a line's bytes before its own hash."""
    if key is not None:
        return hmac.new(key, body, hashlib.sha256).hexdigest()
    return hashlib.sha256(body).hexdigest()


def chain_line(record: Mapping[str, Any], last: Link, key: bytes | None = None) -> tuple[bytes, Link]:
    """The next line of the chain, with its newline, and where the chain stands then."""
    seq = last.seq + 1
    said = {name: value for name, value in record.items() if name not in RESERVED}
    body = msgspec.json.encode({"seq": seq, "prev": last.hash, **said})[:-1]
    hashed = digest(body, key)
    return body + b',"hash":"' + hashed.encode() + b'"}\n', Link(seq, hashed)


def link_of(line: bytes) -> Link | None:
    """Where the chain stood after `line`, or `None` if it is not a line of a chain."""
    read = _read(line)
    return read and Link(read[0].seq, read[2])


def link_before(line: bytes) -> Link | None:
    """Where the chain stood before `line`, or `None` if it is not a line of a chain."""
    read = _read(line)
    return read and Link(read[0].seq - 1, read[0].prev)


def _read(line: bytes) -> tuple[_Place, bytes, str] | None:
    """A line's place, the bytes its hash is over, and its hash."""
    stripped = line.removesuffix(b"\n")
    found = _TAIL.search(stripped)
    if found is None:
        return None
    try:
        place = _place.decode(stripped)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return place, stripped[: found.start()], found.group(1).decode()


def follow(lines: Iterable[bytes], start: Link, key: bytes | None = None) -> Iterator[tuple[Link, str | None]]:
    """Follow the chain: for each line where it stands then, and what is wrong with the line, if anything.

    One edit is one problem: after it, the chain is taken up again with what the line itself says.
    """
    last = start
    for line in lines:
        last, problem = _checked(line, last, key)
        yield last, problem


def _checked(line: bytes, last: Link, key: bytes | None) -> tuple[Link, str | None]:
    if not line.endswith(b"\n"):
        return last, "the line is torn: it does not end"
    read = _read(line)
    if read is None:
        return Link(last.seq + 1, ""), "the line was changed: it is not a record of this log"
    place, body, hashed = read
    if not hmac.compare_digest(digest(body, key), hashed):
        problem = f"the line was changed: record {last.seq + 1} does not match its hash"
        return Link(last.seq + 1, hashed), problem
    here = Link(place.seq, hashed)
    if place.seq > last.seq + 1:
        return here, f"{records(last.seq + 1, place.seq - 1, 'is', 'are')} missing: found record {place.seq}"
    if place.seq <= last.seq:
        return here, f"out of order: found record {place.seq} after record {last.seq}"
    if last.hash and place.prev != last.hash:
        return here, f"record {place.seq} does not follow the line before it: that one was changed or replaced"
    return here, None


def records(first: int, last: int, one: str, many: str) -> str:
    """The records of a range in words, with the verb that fits."""
    return f"record {first} {one}" if first == last else f"records {first} to {last} {many}"
