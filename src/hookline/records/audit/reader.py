"""Reads an audit log from any place on: whole lines only, through rotations, while other processes write.

The file under the log's name may be put aside at any moment: so files are listed until two listings agree, and a file
counts only if it still has the identity that the listing gave it.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hookline.core.files import read_at
from hookline.errors import AuditError
from hookline.records.audit.chain import MOST_LINE, Link, link_before, link_of
from hookline.records.audit.log_file import AuditFile

_LOG = re.compile(r"(.*\.jsonl)(?:\.[0-9]+)?")
_CHUNK = 4 << 20
_TAIL_BYTES = 64


class Segment(msgspec.Struct, frozen=True):
    """One file of a log; its identity outlasts the renaming of a rotation."""

    log: str
    path: str
    identity: str
    size: int


class Cursor(msgspec.Struct, frozen=True):
    """A place in a log: behind `offset` bytes of a file, the last of which were `tail`."""

    identity: str = ""
    offset: int = 0
    tail: bytes = b""


class LogBatch(msgspec.Struct, frozen=True):
    """Whole lines, and the place behind them. `gap`: the log does not hold the place asked for; this is its start."""

    data: bytes
    cursor: Cursor
    gap: bool = False

    @property
    def lines(self) -> list[bytes]:
        """The lines, with their ends; a part of one that is too long for a record has none."""
        if not self.data.endswith(b"\n"):
            return [self.data] if self.data else []
        return [line + b"\n" for line in self.data[:-1].split(b"\n")]


class LogReader:
    """The files of one log, as they are now, and what they hold behind a place."""

    def __init__(self, path: str | Path) -> None:
        self._log = AuditFile(path)

    def segments(self) -> list[Segment]:
        """The files, oldest first; one that is deleted meanwhile is left out."""
        try:
            older = self._log.rotated()
            while True:
                found = []
                for path in (*older, self._log.path):
                    with contextlib.suppress(FileNotFoundError):
                        status = path.stat()
                        found.append(Segment(str(self._log.path), str(path), _identity(status), status.st_size))
                before, older = older, self._log.rotated()
                if older[-1:] == before[-1:]:
                    return found
        except OSError:  # there is no such folder
            return []

    def read(self, after: Cursor | None = None, *, most_bytes: int = _CHUNK, most_lines: int | None = None) -> LogBatch:
        """The next whole lines behind a place, or from the start on; no lines if there are none yet."""
        files, place = self.segments(), after or Cursor()
        index = next((number for number, segment in enumerate(files) if is_at(segment, place)), None)
        gap = index is None and bool(place.identity)
        for segment in files[index or 0 :]:
            if index is None or segment.identity != place.identity:
                place = Cursor(segment.identity)
            data = read_lines(segment, place.offset, most_bytes)
            if data is None:  # it was put aside or deleted meanwhile: list the files again
                return self.read(after, most_bytes=most_bytes, most_lines=most_lines)
            if data:
                if most_lines is not None and data.count(b"\n") > most_lines:
                    data = b"".join(line + b"\n" for line in data.split(b"\n", most_lines)[:most_lines])
                return LogBatch(data, Cursor(segment.identity, place.offset + len(data), data[-_TAIL_BYTES:]), gap)
        return LogBatch(b"", place, gap)

    def find(self, record: Link) -> Cursor | None:
        """The place behind a record, found by reading; `None` if the log does not hold it."""
        for batch in self.batches():
            offset = batch.cursor.offset - len(batch.data)
            for line in batch.lines:
                if link_before(line) == record:
                    return Cursor(batch.cursor.identity, offset)
                offset += len(line)
                if link_of(line) == record:
                    return Cursor(batch.cursor.identity, offset)
        return None

    def found_again(self, place: Cursor, record: Link) -> Cursor | None:
        """A place, by its last record where the files are others, as in a copy; `None` if the log does not hold it."""
        return self.find(record) if place.identity and self.read(place, most_lines=1).gap else place

    def batches(
        self, after: Cursor | None = None, *, most_bytes: int = _CHUNK, most_lines: int | None = None
    ) -> Iterator[LogBatch]:
        while (batch := self.read(after, most_bytes=most_bytes, most_lines=most_lines)).data:
            yield batch
            after = batch.cursor


def is_at(segment: Segment, cursor: Cursor) -> bool:
    """Whether the cursor's place is in this file, and what stood before it still does."""
    if segment.identity != cursor.identity or segment.size < cursor.offset:
        return False
    return not cursor.tail or read_bytes(segment, cursor.offset - len(cursor.tail), len(cursor.tail)) == cursor.tail


def read_bytes(segment: Segment, offset: int, length: int) -> bytes | None:
    """Bytes of a file, fewer if it ends before; `None` if the file is another one by now."""
    try:
        file = open(segment.path, "rb")  # noqa: PTH123, SIM115 - a path as the listing has it
    except FileNotFoundError:
        return None
    with file:
        mine = _identity(os.fstat(file.fileno())) == segment.identity
        return read_at(file.fileno(), length, offset) if mine else None


def read_lines(segment: Segment, offset: int, most_bytes: int = _CHUNK) -> bytes | None:
    """Whole lines of a file from `offset` on: at least one if there is one; `None` if the file is another one by now.

    What has no end within `MOST_LINE` bytes is not a record; it is given out as it is, so that reading goes on.
    """
    length = most_bytes
    while (data := read_bytes(segment, offset, length)) is not None:
        end = data.rfind(b"\n") + 1
        if end or len(data) < length:
            return data[:end]
        if length >= MOST_LINE:
            return data
        length = min(length * 4, MOST_LINE)
    return None


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def logs_in(paths: Iterable[str | Path]) -> list[Path]:
    """The logs that are meant: files as they are, and every `.jsonl` log in a folder, once each."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            names = (_LOG.fullmatch(file.name) and file for file in sorted(path.resolve().rglob("*.jsonl*")))
            files = (file for file in names if file and file.is_file())
            found |= dict.fromkeys(file.with_name(_LOG.sub(r"\1", file.name)) for file in files)
        elif path.exists() or AuditFile(path).head_path.exists():
            found[path.resolve()] = None
        else:
            raise AuditError(f"{path}: no such file or folder; name an audit log, or a folder that holds some")
    return list(found)
