"""The audit log as blocks: from any place, through rotation, after any kill."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.fleet.leaf import MOST_LINES
from hookline.records.audit import AuditFile
from hookline.records.audit.chain import Link, link_before, link_of
from hookline.records.audit.reader import Cursor, LogBatch, LogReader


def written(path: Path, count: int, *, max_bytes: int | None = None) -> list[bytes]:
    """A log of so many records, and its lines."""
    log = AuditFile(path, max_bytes=max_bytes)
    for number in range(count):
        log.append([{"event": "PreToolUse", "number": number}])
    return [line for file in (*log.rotated(), path) for line in file.read_bytes().splitlines(keepends=True)]


def read(path: Path, after: Cursor | Link) -> list[bytes]:
    """Everything behind a place."""
    place = LogReader(path).find(after) if isinstance(after, Link) else after
    return [line for block in blocks(path, place) for line in block.lines]


def blocks(path: Path, after: Cursor | None = None) -> list[LogBatch]:
    """As a machine sends them."""
    return list(LogReader(path).batches(after, most_lines=MOST_LINES))


def test_from_the_beginning(tmp_path: Path) -> None:
    """In blocks of at most so many lines, each following the one before."""
    path = tmp_path / "audit.jsonl"
    AuditFile(path).append({"number": number} for number in range(2 * MOST_LINES + 1))
    found = blocks(path)

    assert [len(block.lines) for block in found] == [MOST_LINES, MOST_LINES, 1]
    assert [link_before(block.lines[0]) for block in found[1:]] == [link_of(block.lines[-1]) for block in found[:-1]]
    assert b"".join(block.data for block in found) == path.read_bytes()


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 40), at=st.integers(0, 40), rotate=st.booleans())
def test_from_any_record_on(tmp_path_factory: object, count: int, at: int, rotate: bool) -> None:
    """A machine that knows only what the hub has goes on right behind it, wherever that is."""
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"  # type: ignore[attr-defined]
    lines = written(path, count, max_bytes=600 if rotate else None)
    at = min(at, count)
    last = link_of(lines[at - 1]) if at else Link()
    assert last is not None

    assert read(path, last) == lines[at:]


def test_a_remembered_place_is_gone_on_from(tmp_path: Path) -> None:
    """Without reading the log again from its first line."""
    path = tmp_path / "audit.jsonl"
    written(path, 3)
    [block] = blocks(path)
    AuditFile(path).append([{"number": 3}])

    assert block.cursor.offset > 0
    assert len(read(path, block.cursor)) == 1


def test_a_torn_line_waits(tmp_path: Path) -> None:
    """A writer is in the middle of it."""
    path = tmp_path / "audit.jsonl"
    lines = written(path, 2)
    with path.open("ab") as file:
        file.write(b'{"seq":3,"prev"')

    assert read(path, Link()) == lines


def test_a_log_that_lost_the_place_is_read_from_its_beginning(tmp_path: Path) -> None:
    """So that the hub sees that it does not follow."""
    path = tmp_path / "audit.jsonl"
    lines = written(path, 2)

    assert read(path, Link(99, "f" * 64)) == lines
