"""An audit log as blocks to send: whole lines of the chain, in order, from any place in it.

The log itself is the spool: what was not sent yet is what comes after the last record that the hub has. So nothing is
kept twice, and a machine that was offline for a week, or killed at any moment, goes on where the hub stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from hookline.records.audit.chain import Link, link_before, link_of
from hookline.records.audit.log_file import AuditFile, last_line
from hookline.records.audit.verification import lines_of

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


class Cursor(msgspec.Struct, frozen=True):
    """A place in a log: up to which record, and where that was, so that it need not be looked for again."""

    last: Link
    inode: int = 0
    offset: int = 0


class ChainReader:
    """Reads the chain behind a place, through rotated files; a torn last line is left for later."""

    def __init__(self, path: Path) -> None:
        self._log = AuditFile(path)

    def after(self, cursor: Cursor) -> Iterator[tuple[Block, Cursor]]:
        """Blocks of what comes after `cursor`, each with the place behind it.

        If the log no longer holds that place, what it does hold is read from its beginning: the hub sees the gap.
        """
        files = [path for path in (*self._log.rotated(), self._log.path) if path.exists()]
        index, offset = _remembered(files, cursor) or _searched(files, cursor.last) or (0, 0)
        for number, path in enumerate(files[index:]):
            yield from _blocks(path, offset if number == 0 else 0)


def _remembered(files: list[Path], cursor: Cursor) -> tuple[int, int] | None:
    """The place that the cursor names, if the line before it is still the one it was."""
    for index, path in enumerate(files):
        if cursor.offset and path.stat().st_ino == cursor.inode:
            with path.open("rb") as file:
                line, _ = last_line(file.fileno(), min(cursor.offset, path.stat().st_size))
            return (index, cursor.offset) if link_of(line) == cursor.last else None
    return None


def _searched(files: list[Path], place: Link) -> tuple[int, int] | None:
    """The file and offset behind a record, found by reading; `None` if the log does not hold it."""
    for index, path in enumerate(files):
        offset = 0
        for line in _whole_lines(path):
            if offset == 0 and link_before(line) == place:
                return index, 0
            offset += len(line)
            if link_of(line) == place:
                return index, offset
    return None


def _blocks(path: Path, start: int) -> Iterator[tuple[Block, Cursor]]:
    inode, offset = path.stat().st_ino, start
    lines: list[bytes] = []
    size = 0
    for line in _whole_lines(path, start):
        if lines and (size + len(line) > MOST_BYTES or len(lines) >= MOST_LINES):
            yield _block(lines), Cursor(_last(lines), inode, offset)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
        offset += len(line)
    if lines:
        yield _block(lines), Cursor(_last(lines), inode, offset)


def _block(lines: list[bytes]) -> Block:
    return Block(link_before(lines[0]) or Link(), _last(lines), tuple(lines))


def _last(lines: list[bytes]) -> Link:
    return link_of(lines[-1]) or Link(hash="")


def _whole_lines(path: Path, start: int = 0) -> Iterator[bytes]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(min(start, size))
        for line in lines_of(file, size - start):
            if line.endswith(b"\n"):
                yield line
