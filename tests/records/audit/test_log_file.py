"""A chained log on disk: shared, rotated, repaired, and verified with file and line."""

import json
import logging
import os
import random
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hookline.errors import AuditError
from hookline.records.audit.chain import Link
from hookline.records.audit.log import read
from hookline.records.audit.log_file import AuditFile

STORM = Path(__file__).with_name("storm.py")
LINES = int(os.environ.get("HOOKLINE_STORM_LINES", "400"))
"""How many lines each of the eight writers appends; the figure in the docs was taken with 10,000."""


@pytest.fixture
def file(tmp_path: Path) -> AuditFile:
    return AuditFile(tmp_path / "audit.jsonl")


def records(count: int, start: int = 0) -> list[dict[str, int]]:
    return [{"number": number} for number in range(start, start + count)]


def broken(file: AuditFile) -> list[str]:
    return [str(one).removeprefix(str(file.path.parent) + "/") for one in file.verify()]


# -- several processes, killed at random -----------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [[], ["60000", "1000"]], ids=["one-file", "rotated"])
def test_no_acknowledged_line_is_lost_or_torn_when_writers_are_killed(tmp_path: Path, limits: list[str]) -> None:
    """Eight processes append while they are killed and started again: all they were promised is there, and whole."""
    path = tmp_path / "audit.jsonl"
    command = [sys.executable, str(STORM), str(path), "8", str(LINES), "1", *limits]
    ran = subprocess.run(command, capture_output=True, check=True, timeout=1200)
    told = json.loads(ran.stdout)
    file = AuditFile(path)
    there: list[set[int]] = [set() for _ in range(8)]
    for part in [*file.rotated(), path]:
        for line in read(part):
            said = line.get("input", line)
            there[said["writer"]].add(said["number"])

    assert told["kills"] > 5
    assert min(told["acknowledged"]) >= LINES
    assert there == [set(range(written)) for written in told["acknowledged"]]
    assert file.verify() == []
    assert bool(file.rotated()) == bool(limits)


def test_threads_of_one_process_take_turns(file: AuditFile) -> None:
    """One `AuditFile` may be used by any number of threads."""

    def write(start: int) -> None:
        for number in range(start, start + 50):
            file.append([{"number": number}])

    threads = [threading.Thread(target=write, args=(n * 50,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(line["number"] for line in read(file.path)) == list(range(300))
    assert file.verify() == []


# -- finding what was changed ----------------------------------------------------------------------------------------


def test_any_changed_byte_fails_verification_at_its_line(file: AuditFile) -> None:
    """Bytes all over the file, every newline among them, one at a time."""
    file.append(records(30))
    whole = file.path.read_bytes()
    chance = random.Random(3)
    newlines = [at for at, byte in enumerate(whole) if byte == 10]
    for at in [*newlines, len(whole) - 2, 0, *(chance.randrange(len(whole)) for _ in range(300))]:
        file.path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :])
        line = whole[:at].count(b"\n") + 1

        assert broken(file)[0].startswith(f"audit.jsonl:{line}: "), at
    file.path.write_bytes(whole)
    assert broken(file) == []


@pytest.mark.parametrize(
    "removed, said",
    [
        (0, "audit.jsonl:1: record 1 is missing: found record 2"),
        (14, "audit.jsonl:15: record 15 is missing: found record 16"),
        (29, "audit.jsonl:30: record 30 was cut off"),
    ],
)
def test_a_removed_line_fails_verification_where_it_stood(file: AuditFile, removed: int, said: str) -> None:
    """The first, one in the middle, and the last."""
    file.append(records(30))
    lines = file.path.read_bytes().splitlines(keepends=True)
    file.path.write_bytes(b"".join(lines[:removed] + lines[removed + 1 :]))

    assert broken(file) == [said]


def test_swapped_lines_fail_verification(file: AuditFile) -> None:
    """The order of the lines is part of what is kept."""
    file.append(records(5))
    lines = file.path.read_bytes().splitlines(keepends=True)
    file.path.write_bytes(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))

    assert broken(file)[0] == "audit.jsonl:2: record 2 is missing: found record 3"


def test_an_emptied_or_deleted_file_fails_verification(file: AuditFile) -> None:
    """The head remembers how many lines there were."""
    file.append(records(3))
    file.path.write_bytes(b"")

    assert broken(file) == ["audit.jsonl:1: records 1 to 3 were cut off"]
    file.path.unlink()
    assert broken(file) == ["audit.jsonl:1: records 1 to 3 were cut off"]


def test_a_removed_rotated_file_fails_verification(tmp_path: Path) -> None:
    """A whole file may not vanish from the middle, and the files around it are blamed at their line."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=1000)
    for number in range(40):
        file.append(records(1, number))
    first, second, third, *_ = file.rotated()
    lost = list(read(second))
    second.unlink()

    said = f"records {lost[0]['seq']} to {lost[-1]['seq']} are missing: found record {lost[-1]['seq'] + 1}"
    assert broken(file) == [f"{third.name}:1: {said}"]
    first.unlink()
    assert broken(file)[0].startswith(f"{third.name}:1: records 1 to ")


def test_a_rewritten_last_line_is_not_the_one_the_head_knows(file: AuditFile) -> None:
    """Redoing the last line's hash is not enough."""
    file.append(records(3))
    other = AuditFile(file.path.with_name("other.jsonl"))
    other.append([*records(2), {"number": 99}])
    file.path.write_bytes(other.path.read_bytes())

    assert broken(file) == ["audit.jsonl:3: record 3 is not the one that was written last"]


def test_the_head_of_a_log_without_records_cannot_be_changed(file: AuditFile) -> None:
    """Where the first record is to begin is part of what is verified."""
    file.append([])
    head = file.head_path.read_bytes()
    file.head_path.write_bytes(head.replace(b'"hash":"0', b'"hash":"1'))

    assert broken(file) == ["audit.jsonl:0: record 0 is not the one that was written last"]


@pytest.mark.parametrize(
    "head", [{"base_seq": 99}, {"base_seq": -1}, {"base_hash": ""}, {"base_hash": "x"}, {"seq": 1}, {"seq": -1}]
)
def test_a_head_that_could_not_have_been_written_is_damaged(tmp_path: Path, head: dict[str, object]) -> None:
    """One that says that the oldest line comes after the last would have every file passed over."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=200, keep=2)
    for record in records(12):
        file.append([record])
    file.head_path.write_text(json.dumps(json.loads(file.head_path.read_text()) | head))

    assert broken(file) == [
        "audit.jsonl.head:1: the head file is missing or damaged: it cannot be told whether lines were cut off"
    ]


def test_a_garbage_file_gives_a_bounded_list(file: AuditFile) -> None:
    """A file that was overwritten is told of a thousand times at most."""
    file.append(records(1))
    file.path.write_bytes(b"no record\n" * 5000)

    assert len(broken(file)) == 1000


# -- the key ---------------------------------------------------------------------------------------------------------


def test_a_log_with_a_key_is_verified_with_it_only(tmp_path: Path) -> None:
    """Another key, or none, is said to be the problem."""
    path = tmp_path / "audit.jsonl"
    AuditFile(path, key=b"one").append(records(3))

    assert AuditFile(path, key=b"one").verify() == []
    assert [b.problem for b in AuditFile(path).verify()] == ["the log was written with a key; give it"]
    assert [b.problem for b in AuditFile(path, key=b"two").verify()] == [
        "the head file was changed, or the key is another one"
    ]


def test_with_a_key_lines_cannot_be_cut_off_by_adjusting_the_head(tmp_path: Path) -> None:
    """The head is signed too: an older copy of the log with a head made to fit it is found out."""
    file = AuditFile(tmp_path / "audit.jsonl", key=b"key")
    link = file.append(records(3))
    lines = file.path.read_bytes().splitlines(keepends=True)
    file.append(records(2, 3))
    file.path.write_bytes(b"".join(lines))
    head = json.loads(file.head_path.read_bytes())
    file.head_path.write_text(json.dumps({**head, "seq": link.seq, "hash": link.hash}))

    assert broken(file) == ["audit.jsonl.head:1: the head file was changed, or the key is another one"]


def test_a_writer_with_another_key_is_refused(tmp_path: Path) -> None:
    """One log has one key: a second process that was given another says so instead of breaking the chain."""
    AuditFile(tmp_path / "audit.jsonl", key=b"one").append(records(1))

    with pytest.raises(AuditError, match="the key is another one"):
        AuditFile(tmp_path / "audit.jsonl", key=b"two").append(records(1))
    with pytest.raises(AuditError, match="written with a key"):
        AuditFile(tmp_path / "audit.jsonl").append(records(1))


# -- after a kill ----------------------------------------------------------------------------------------------------


def test_a_torn_end_that_nobody_relied_on_is_cut_off_by_the_next_writer(
    file: AuditFile, caplog: pytest.LogCaptureFixture
) -> None:
    """What a killed process left half written is removed, aloud, and the chain goes on; meanwhile the log is whole."""
    file.append(records(2))
    with file.path.open("ab") as log:
        log.write(b'{"seq":3,"prev":"0')

    assert broken(file) == []
    with caplog.at_level(logging.WARNING):
        AuditFile(file.path).append(records(1, 2))
    assert "cut off a torn last line of 18 bytes" in caplog.text
    assert [line["number"] for line in read(file.path)] == [0, 1, 2]
    assert broken(file) == []


def test_a_torn_end_longer_than_any_buffer_is_cut_off(file: AuditFile) -> None:
    """However long the torn line, all of it goes, and none of the line before."""
    file.append([{"number": 0, "text": "x" * 300_000}])
    with file.path.open("ab") as log:
        log.write(b"y" * 3_000_000)
    AuditFile(file.path).append(records(1, 1))

    assert [line["number"] for line in read(file.path)] == [0, 1]
    assert broken(file) == []


def test_a_torn_end_is_cut_off_before_the_file_is_rotated(tmp_path: Path) -> None:
    """A file that is put aside is whole."""
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, max_bytes=500)
    file.append(records(10))
    with path.open("ab") as log:
        log.write(b'{"seq":11,"prev":"')
    AuditFile(path, max_bytes=500).append(records(1, 10))

    assert [p.name for p in file.rotated()] == ["audit.jsonl.1"]
    assert broken(file) == []
    assert next(iter(read(path)))["seq"] == 11


def test_lines_written_by_a_process_killed_before_it_moved_the_head_stay(file: AuditFile) -> None:
    """The head may lag behind the file; the next writer goes on from the file, also right after a rotation."""
    file.append(records(1))
    old_head = file.head_path.read_bytes()
    file.append(records(1, 1))
    file.head_path.write_bytes(old_head)

    assert broken(file) == []
    AuditFile(file.path, max_bytes=1, keep=0).append(records(1, 2))
    assert [line["seq"] for line in read(file.path)] == [3]
    assert broken(file) == []


def test_a_kill_between_renaming_and_the_first_line_does_no_harm(tmp_path: Path) -> None:
    """The newest file may be missing; the chain goes on from the one put aside."""
    file = AuditFile(tmp_path / "audit.jsonl")
    file.append(records(3))
    file.path.rename(file.path.with_name("audit.jsonl.1"))

    assert broken(file) == []
    AuditFile(file.path).append(records(1, 3))
    assert [line["seq"] for line in read(file.path)] == [4]
    assert broken(file) == []


def test_a_kill_while_old_files_are_deleted_does_no_harm(tmp_path: Path) -> None:
    """A file that was to be deleted, and is still there, is passed over."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=1, keep=1)
    file.append(records(1))
    file.append(records(1, 1))
    left = file.rotated()[0].read_bytes()
    file.append(records(1, 2))
    (tmp_path / "audit.jsonl.1").write_bytes(left)

    assert broken(file) == []
    file.append(records(1, 3))
    assert [p.name for p in file.rotated()] == ["audit.jsonl.3"]
    assert broken(file) == []


@pytest.mark.parametrize("damage", [None, b"", b"\x00" * 1025, b"{}garbage"])
def test_a_log_that_lost_its_head_goes_on_but_is_no_longer_beyond_doubt(
    tmp_path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can say any more whether lines were cut off before that: it is said, and stays said."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=500, keep=1)
    for number in range(10):
        file.append(records(1, number))
    file.head_path.unlink() if damage is None else file.head_path.write_bytes(damage)

    assert broken(file) == [
        "audit.jsonl.head:1: the head file is missing or damaged: it cannot be told whether lines were cut off"
    ]
    with caplog.at_level(logging.WARNING):
        AuditFile(file.path).append(records(1, 10))
    assert "lost or damaged" in caplog.text
    doubt = "the head file was lost at record 10: it cannot be told whether lines before it were cut off"
    assert broken(file) == [f"audit.jsonl.head:1: {doubt}"]


# -- rotation --------------------------------------------------------------------------------------------------------


def test_a_full_file_is_put_aside_and_the_oldest_deleted(tmp_path: Path) -> None:
    """`keep` of them stay, the chain runs through them all, and what is gone on purpose is not missed."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=600, keep=2)
    for number in range(40):
        file.append(records(1, number))
    kept = [line["number"] for path in [*file.rotated(), file.path] for line in read(path)]

    assert [path.name for path in file.rotated()] == ["audit.jsonl.8", "audit.jsonl.9"]
    assert kept == list(range(40 - len(kept), 40))
    assert broken(file) == []


def test_numbers_go_on_after_nine_and_other_files_are_left_alone(tmp_path: Path) -> None:
    """`audit.jsonl.10` is newer than `.9`, and `.1.bak` or `.old` are nobody's business."""
    for name in ("audit.jsonl.1.bak", "audit.jsonl.old", "audit.jsonl.2026-01-01"):
        (tmp_path / name).write_text("mine")
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=1, keep=3)
    for number in range(15):
        file.append(records(1, number))

    assert [path.name for path in file.rotated()] == [f"audit.jsonl.{n}" for n in (12, 13, 14)]
    assert broken(file) == []
    assert (tmp_path / "audit.jsonl.1.bak").read_text() == "mine"


def test_a_file_that_looks_like_the_known_one_is_not_taken_for_it(tmp_path: Path) -> None:
    """A new file may get the old one's inode and grow to its size; a writer that slept meanwhile goes on rightly."""
    path = tmp_path / "audit.jsonl"
    sleeper, other = AuditFile(path), AuditFile(path, max_bytes=1, keep=0)
    for number in range(9):
        sleeper.append(records(1, number))
        other.append(records(1, number))

    assert broken(sleeper) == []
    assert AuditFile(path).append([]).seq == 18


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_what_was_there_whole(file: AuditFile) -> None:
    """A line that fits only in part is taken back; once there is room, the chain goes on."""
    file.append(records(3))
    size = file.path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(size + 100, 2000), hard))
    try:
        with pytest.raises(AuditError, match=r"audit\.jsonl: cannot write the audit log: File too large"):
            file.append([{"text": "x" * 5000}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert file.path.stat().st_size == size
    assert file.append(records(1, 3)).seq == 4
    assert broken(file) == []


def test_no_room_at_all_is_said(tmp_path: Path) -> None:
    """`/dev/full` is a disk without room."""
    path = tmp_path / "audit.jsonl"
    path.symlink_to("/dev/full")

    with pytest.raises(AuditError, match="No space left on device"):
        AuditFile(path).append(records(1))


@pytest.mark.parametrize(
    "path, why", [("missing/audit.jsonl", "No such file"), ("file/audit.jsonl", "Not a directory")]
)
def test_a_missing_folder_is_said(tmp_path: Path, path: str, why: str) -> None:
    """The message names the file and what is wrong."""
    (tmp_path / "file").write_text("")

    with pytest.raises(AuditError, match=rf"{path}: cannot write the audit log: {why}"):
        AuditFile(tmp_path / path).append(records(1))


def test_a_record_that_is_no_json_is_refused_and_nothing_is_written(file: AuditFile) -> None:
    """The chain stands where it stood."""
    with pytest.raises(AuditError, match="cannot write a record"):
        file.append([{"number": 0}, {"what": object()}])

    assert file.append([]) == Link()
    assert broken(file) == []


def test_a_line_that_is_not_a_record_is_put_aside_with_its_file(file: AuditFile) -> None:
    """Nothing is chained to what somebody else wrote; the log goes on in a new file that says why."""
    file.append(records(1))
    with file.path.open("ab") as log:
        log.write(b"hello\n")
    AuditFile(file.path).append(records(1, 1))

    assert [line["seq"] for line in read(file.path)] == [2, 3]
    assert broken(file) == [
        "audit.jsonl.1:2: the line was changed: it is not a record of this log",
        "audit.jsonl:1: out of order: found record 2 after record 2",
        "audit.jsonl:1: a writer found the log broken here: the last line is not a record; record 1 was expected",
    ]


def test_a_log_nobody_may_write_to_can_still_be_verified(file: AuditFile) -> None:
    """An auditor reads a copy that is read-only."""
    file.append(records(3))
    file.head_path.chmod(0o400)
    file.path.chmod(0o400)

    assert broken(file) == []
