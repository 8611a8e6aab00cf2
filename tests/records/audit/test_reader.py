"""Reading a log from any place on, while it is written and rotated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.cli.commands import audit
from hookline.errors import HooklineError
from hookline.fleet.leaf import MOST_LINES
from hookline.records.audit.chain import MOST_LINE, link_of
from hookline.records.audit.log_file import AuditFile
from hookline.records.audit.reader import Cursor, LogReader, logs_in


def numbers(data: bytes) -> list[int]:
    return [json.loads(line)["number"] for line in data.splitlines()]


def read_by_batches(path: Path, cursor: Cursor) -> tuple[list[int], Cursor]:
    batch = LogReader(path).read(cursor, most_bytes=1, most_lines=1)
    return numbers(batch.data), batch.cursor


def read_by_blocks(path: Path, cursor: Cursor) -> tuple[list[int], Cursor]:
    found = next(LogReader(path).batches(cursor, most_lines=MOST_LINES), None)
    return (numbers(found.data), found.cursor) if found else ([], cursor)


CLIENTS: dict[str, Callable[[Path, Cursor], tuple[list[int], Cursor]]] = {
    "batches": read_by_batches,
    "blocks of the fleet": read_by_blocks,
}


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.sampled_from(["write", "rotate", "read"]), min_size=1, max_size=40))
def test_every_record_is_read_once_wherever_the_log_is_rotated(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Before, between and after reads; each client of the reader has its own place."""
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    seen: dict[str, list[int]] = {name: [] for name in CLIENTS}
    cursors = dict.fromkeys(CLIENTS, Cursor())
    written = 0
    for step in [*steps, *["read"] * (len(steps) + 1)]:
        if step == "write":
            AuditFile(path).append([{"number": written}])
            written += 1
        elif step == "rotate" and path.exists():
            AuditFile(path, max_bytes=1).append([{"number": written}])
            written += 1
        else:
            for name, client in CLIENTS.items():
                found, cursors[name] = client(path, cursors[name])
                seen[name] += found

    assert seen == {name: list(range(written)) for name in CLIENTS}


def test_a_file_that_is_put_aside_between_listing_and_opening_is_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later file must not pass for the one that was listed."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=1)
    file.append([{"number": 0}])
    rotated, late = AuditFile.rotated, [1, 2]

    def overtaken(log: AuditFile) -> list[Path]:
        older = rotated(log)
        if late and log is not file:  # the reader looks; the writer looks too, and must not be overtaken by itself
            file.append([{"number": late.pop(0)}])
        return older

    monkeypatch.setattr(AuditFile, "rotated", overtaken)
    found = [number for batch in LogReader(file.path).batches() for number in numbers(batch.data)]

    assert found == [0, 1, 2]


def test_a_place_that_was_pruned_or_replaced_is_a_gap(tmp_path: Path) -> None:
    """What there is comes from its start on, and the reader says so."""
    path = tmp_path / "audit.jsonl"
    AuditFile(path).append([{"number": 0}, {"number": 1}])
    behind = LogReader(path).read()
    path.unlink()
    path.with_name("audit.jsonl.head").unlink()
    AuditFile(path).append([{"number": 2}, {"number": 3}])
    batch = LogReader(path).read(behind.cursor)

    assert (batch.gap, numbers(batch.data)) == (True, [2, 3])


def test_a_torn_line_waits_and_one_that_never_ends_is_passed_on(tmp_path: Path) -> None:
    """Reading neither waits for ever nor takes half a record for one."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"number":0}\n{"numb')
    first = LogReader(path).read()
    waiting = LogReader(path).read(first.cursor)
    with path.open("ab") as file:
        file.write(b'er":1}\n' + b"x" * MOST_LINE + b'\n{"number":2}\n')
    rest = [line for batch in LogReader(path).batches(waiting.cursor) for line in batch.lines]

    assert (first.lines, waiting.lines) == ([b'{"number":0}\n'], [])
    assert (rest[0], b"".join(rest[1:-1]), rest[-1]) == (b'{"number":1}\n', b"x" * MOST_LINE + b"\n", b'{"number":2}\n')


def test_a_record_is_found(tmp_path: Path) -> None:
    """The place behind any record."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=300)
    for number in range(8):
        file.append([{"number": number}])
    reader = LogReader(file.path)
    lines = [line for batch in reader.batches() for line in batch.lines]
    for number, line in enumerate(lines):
        link = link_of(line)
        assert link is not None
        place = reader.find(link)
        assert place is not None
        assert numbers(b"".join(batch.data for batch in reader.batches(place))) == list(range(number + 1, 8))


def test_folders_hold_logs(tmp_path: Path) -> None:
    """A log of which only rotated files are left counts once; what is missing is named."""
    (tmp_path / "a.jsonl.1").write_bytes(b"")
    (tmp_path / "a.jsonl.2").write_bytes(b"")
    (tmp_path / "notes.jsonl.txt").write_bytes(b"")

    assert logs_in([tmp_path]) == [tmp_path / "a.jsonl"]
    with pytest.raises(HooklineError, match="no such file or folder"):
        logs_in([tmp_path / "missing"])


def test_garbage_is_not_shown_as_an_empty_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`audit show` of a file without one record says so, with exit code 2."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"not a record\n")

    assert audit.main(["show", str(path)]) == 2
    assert "1 line cannot be read as records" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["yesterday", "7", "31.12.2026"])
def test_a_time_that_is_not_one_is_refused_with_what_to_write(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The words that work, not the name of a function."""
    with pytest.raises(SystemExit):
        audit.main(["show", "--since", text])

    assert "expected a date such as `2026-01-31`" in capsys.readouterr().err
