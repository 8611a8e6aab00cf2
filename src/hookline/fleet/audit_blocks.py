"""An audit log as blocks to send: whole lines of the chain, in order, from any place in it.

The log itself is the spool: what was not sent yet is what comes after the last record that the hub has. So nothing is
kept twice, and a machine that was offline for a week, or killed at any moment, goes on where the hub stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from hookline.records.audit.chain import Link, link_before, link_of
from hookline.records.audit.reader import Cursor, LogReader

MOST_BYTES = 256 << 10
MOST_LINES = 500


class Block(msgspec.Struct, frozen=True):
    """Lines that follow each other; `before` is where the chain stood, `last` where it stands after them."""

    before: Link
    last: Link
    lines: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """What is sent."""
        return b"".join(self.lines)


def place_after(log: Path, record: Link) -> Cursor:
    """The place behind a record; the log's start if it does not hold the record."""
    return LogReader(log).find(record) or Cursor()


def blocks_after(log: Path, cursor: Cursor) -> Iterator[tuple[Block, Cursor]]:
    """Blocks of what comes after a place, each with the place behind it.

    If the log no longer holds that place, what it does hold is read from its beginning: the hub sees the gap.
    """
    reader = LogReader(log)
    while True:
        batch = reader.read(cursor, most_bytes=MOST_BYTES, most_lines=MOST_LINES)
        if not batch.data:
            return
        lines, cursor = batch.lines, batch.cursor
        last = link_of(lines[-1]) or Link(hash="")
        yield Block(link_before(lines[0]) or Link(), last, tuple(lines)), cursor
