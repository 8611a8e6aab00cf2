"""Whether a log is whole: the chain through all its files, its head, its anchor, and breaks that writers found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import tee
from pathlib import Path
from typing import BinaryIO

import msgspec

from hookline.errors import AuditError
from hookline.records.audit.anchor import Anchor, Head, key_problem
from hookline.records.audit.chain import Break, Link, follow, link_before, records

MOST_LINE = 16 << 20
"""A longer line is not a record of ours, and is read in parts."""
MOST_BREAKS = 1_000
BREAK = "AuditBreak"
"""The event of the record that a writer begins a new file with when it finds the log cut or changed."""
_MARK = b'"event":"AuditBreak"'
_Files = list[tuple[Path, BinaryIO, int]]


class LogFiles(msgspec.Struct, frozen=True):
    """A log as it was at one moment: its names, its head, and all its files, opened, with their sizes."""

    path: Path
    head_path: Path
    head: Head | None
    files: _Files


def verified(log: LogFiles, key: bytes | None, anchor: Anchor | None) -> list[Break]:
    """Everything that is wrong with a log; nothing if it is whole."""
    mark, problems = _marked(log, key, anchor)
    if log.head is None:
        return [*problems, *_headless(log, key, mark)]
    wrong_key = key_problem(log.head, key)
    if wrong_key is not None:
        return [*problems, Break(str(log.head_path), 1, wrong_key)]
    walk = _Walk(key, mark)
    walk.through(log.files, log.head)
    return [*problems, *_lost_head(log), *walk.breaks[:MOST_BREAKS], *_end(log, log.head, walk), *_anchored(log, walk)]


def _marked(log: LogFiles, key: bytes | None, anchor: Anchor | None) -> tuple[Link | None, list[Break]]:
    """The record that the anchor knows, or what is wrong with the anchor."""
    if anchor is None:
        return None, []
    try:
        mark = anchor.read(key)
    except AuditError as problem:
        return None, [Break(str(anchor), 1, str(problem).removeprefix(f"{anchor}: "))]
    if mark is None and anchor.required and hasattr(anchor, "path") and log.head is not None and log.head.seq:
        return None, [Break(str(anchor), 1, "the anchor is missing: it cannot be told whether the log was rolled back")]
    return mark, []


def _headless(log: LogFiles, key: bytes | None, mark: Link | None) -> list[Break]:
    if not log.files and mark is None:
        return []
    walk = _Walk(key, mark)
    walk.through(log.files, None)
    why = "the head file is missing or damaged: it cannot be told whether lines were cut off"
    return [Break(str(log.head_path), 1, why), *walk.breaks[:MOST_BREAKS], *_anchored(log, walk)]


def _lost_head(log: LogFiles) -> list[Break]:
    if log.head is None or log.head.lost_at is None:
        return []
    lost = f"the head file was lost at record {log.head.lost_at}"
    return [Break(str(log.head_path), 1, f"{lost}: it cannot be told whether lines before it were cut off")]


def _end(log: LogFiles, head: Head, walk: _Walk) -> list[Break]:
    """Whether the log ends where its head says."""
    last = walk.last or Link()
    if last.seq < head.seq:
        return [Break(str(log.path), walk.lines + 1, f"{records(last.seq + 1, head.seq, 'was', 'were')} cut off")]
    if last.seq == head.seq and last.hash not in (head.hash, ""):
        return [Break(str(log.path), walk.lines, f"record {last.seq} is not the one that was written last")]
    return []


def _anchored(log: LogFiles, walk: _Walk) -> list[Break]:
    """Whether the log still holds the record that its anchor knows."""
    mark, last = walk.mark, walk.last or Link()
    if mark is None or mark.seq == 0:
        return []
    if last.seq < mark.seq:
        gone = records(last.seq + 1, mark.seq, "was", "were")
        return [Break(str(log.path), walk.lines + 1, f"{gone} removed: the log was rolled back or deleted")]
    if walk.at_mark is not None and walk.at_mark.hash not in (mark.hash, ""):
        why = f"record {mark.seq} is not the one that the anchor knows: the log was rolled back and written again"
        return [Break(str(log.path), walk.lines, why)]
    return []


class _Walk:
    """Follows the chain from file to file."""

    def __init__(self, key: bytes | None, mark: Link | None) -> None:
        self.mark = mark
        self.at_mark: Link | None = None
        self.last: Link | None = None
        self.lines = 0
        self.breaks: list[Break] = []
        self._key = key

    def through(self, files: _Files, head: Head | None) -> None:
        """All files, the oldest first; `lines` is then how many the last one has."""
        self.last = head.base if head is not None else None
        for path, file, size in files:
            if head is not None and _is_pruned(file, head):
                continue
            torn = self._follow(path, file, size)
            if torn and (file is not files[-1][1] or head is None or (self.last or Link()).seq < head.seq):
                self._say(path, self.lines + 1, "the line is torn: it does not end")

    def _follow(self, path: Path, file: BinaryIO, size: int) -> bool:
        """Follow one file; says whether its end is torn, as a writer that was killed leaves it; no one misses it."""
        if self.last is None:
            self.last = link_before(file.readline(MOST_LINE)) or Link()
            file.seek(0)
        self.lines = 0
        lines, same = tee(lines_of(file, size))
        links = follow(lines, self.last, self._key)
        for number, ((link, problem), line) in enumerate(zip(links, same, strict=True), 1):
            if problem is not None and file.tell() >= size and not _ends(file):
                return True
            self.lines, self.last = number, link
            if self.mark is not None and link.seq == self.mark.seq:
                self.at_mark = link
            if problem is not None:
                self._say(path, number, problem)
            if _MARK in line and link.hash:
                self._say(path, number, _recorded_break(line))
        return False

    def _say(self, path: Path, line: int, problem: str) -> None:
        if problem and len(self.breaks) < MOST_BREAKS:
            self.breaks.append(Break(str(path), line, problem))


class _BreakRecord(msgspec.Struct):
    event: str = ""
    problem: str = ""


def _recorded_break(line: bytes) -> str:
    """What a writer wrote down of a break; nothing for a record that only quotes such a line."""
    found = msgspec.json.decode(line, type=_BreakRecord)
    return f"a writer found the log broken here: {found.problem}" if found.event == BREAK else ""


def _ends(file: BinaryIO) -> bool:
    """Whether what was read last is a whole line."""
    file.seek(-1, os.SEEK_CUR)
    return file.read(1) == b"\n"


def _is_pruned(file: BinaryIO, head: Head) -> bool:
    """Whether a file was to be deleted, and only a kill left it there."""
    first = link_before(file.readline(MOST_LINE))
    file.seek(0)
    return first is not None and first.seq < head.base_seq


def lines_of(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The lines in the first `size` bytes; of one that is too long to be a record, only its parts."""
    left = size
    while left > 0 and (line := file.readline(min(MOST_LINE, left))):
        left -= len(line)
        yield line
