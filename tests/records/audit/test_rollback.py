"""Lines cut off the end, logs rolled back or removed: found out, whoever writes the next line."""

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.errors import AuditError
from hookline.records.audit import AuditFile, AuditLog, read
from hookline.records.audit.chain import Link, chain_line

KEY = b"only the writers know"
keyed = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])


def records(count: int, start: int = 0) -> list[dict[str, int]]:
    return [{"number": number} for number in range(start, start + count)]


def written(path: Path, count: int = 10, start: int = 0, **more: object) -> AuditFile:
    file = AuditFile(path / "audit.jsonl", **more)  # type: ignore[arg-type]
    for number in range(start, start + count):
        file.append(records(1, number))
    return file


def lines(file: AuditFile) -> list[bytes]:
    return file.path.read_bytes().splitlines(keepends=True)


def again(file: AuditFile, key: bytes | None) -> AuditFile:
    """Another process's view of the same log."""
    return AuditFile(file.path, key=key)


# -- the head is authoritative ---------------------------------------------------------------------------------------

CUTS: dict[str, Callable[[AuditFile], object]] = {
    "the last line": lambda file: file.path.write_bytes(b"".join(lines(file)[:-1])),
    "the last three": lambda file: file.path.write_bytes(b"".join(lines(file)[:-3])),
    "all but one": lambda file: file.path.write_bytes(lines(file)[0]),
    "all lines": lambda file: file.path.write_bytes(b""),
    "the file": lambda file: file.path.unlink(),
    "half a line": lambda file: file.path.write_bytes(file.path.read_bytes()[:-40]),
    "a replaced last line": lambda file: file.path.write_bytes(
        b"".join([*lines(file)[:-1], chain_line({"number": 99}, Link(9, _hash(lines(file)[-2])))[0]])
    ),
    "lines of others after the last": lambda file: file.path.write_bytes(
        b"".join([*lines(file), *(chain_line({"number": n}, Link(10 + n, "0" * 64))[0] for n in range(3))])
    ),
}


def _hash(line: bytes) -> str:
    found: str = json.loads(line)["hash"]
    return found


@keyed
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("more", [1, 5, 20])
def test_a_cut_stays_found_whoever_writes_the_next_line(
    tmp_path: Path, key: bytes | None, cut: Callable[[AuditFile], object], more: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The head knows how far the log went: the next writer begins a new file with the break, and verify names it."""
    file = written(tmp_path, key=key)
    cut(file)
    with caplog.at_level(logging.ERROR):
        for number in range(more):
            again(file, key).append(records(1, 10 + number))

    first = next(iter(read(file.path)))
    assert (first["event"], first["seq"], first["after"]) == ("AuditBreak", 11, 10)
    assert [line["number"] for line in read(file.path) if "number" in line] == list(range(10, 10 + more))
    assert "it is put aside" in caplog.text
    found = [str(one) for one in again(file, key).verify()]
    assert any("a writer found the log broken here" in one for one in found)


@keyed
def test_what_was_cut_is_not_touched_by_the_next_writer(tmp_path: Path, key: bytes | None) -> None:
    """The evidence stays as it was found."""
    file = written(tmp_path, key=key)
    file.path.write_bytes(b"".join(lines(file)[:7]) + b'{"torn')
    evidence = file.path.read_bytes()
    again(file, key).append(records(1))

    assert file.rotated()[0].read_bytes() == evidence
    assert "records 8 to 10 are missing: found record 11" in " ".join(map(str, again(file, key).verify()))


def test_a_log_that_was_cut_can_be_rotated_and_pruned(tmp_path: Path) -> None:
    """A file that does not end with a record is deleted like any other when its time comes."""
    file = written(tmp_path)
    file.path.write_bytes(file.path.read_bytes() + b"hello\n")
    small = AuditFile(file.path, max_bytes=1, keep=1)
    for number in range(4):
        small.append(records(1, 10 + number))

    assert len(small.rotated()) == 1
    assert small.verify() == []  # the break was in a file that is no longer kept


def test_an_agent_goes_on_and_its_log_tells(tmp_path: Path) -> None:
    """A log that somebody cut does not stop the agent: the break is on record with the next verdict."""
    file = written(tmp_path)
    file.path.write_bytes(b"".join(lines(file)[:5]))
    log = AuditLog(file.path, redact=str)

    assert log.flush()
    log.file.append([{"event": "Stop"}])
    assert [line["event"] for line in read(file.path)] == ["AuditBreak", "Stop"]


# -- rolled back together with the head ------------------------------------------------------------------------------


def copy(folder: Path, to: Path) -> Path:
    to.mkdir()
    for path in folder.glob("audit.jsonl*"):
        shutil.copy2(path, to)
    return to


def roll_back(folder: Path, saved: Path | None) -> None:
    for path in folder.glob("audit.jsonl*"):
        path.unlink()
    for path in saved.iterdir() if saved else ():
        shutil.copy2(path, folder)


@pytest.mark.parametrize("removed", [False, True], ids=["rolled back", "removed"])
@pytest.mark.parametrize("more", [0, 1, 3, 8])
@pytest.mark.parametrize("anchor", ["state", "file"])
def test_a_keyed_log_rolled_back_with_its_head_is_found_out(
    tmp_path: Path, removed: bool, more: int, anchor: str
) -> None:
    """Older copies of log and head, signed and all, or nothing at all: the anchor elsewhere knows better."""
    folder = tmp_path / "log"
    folder.mkdir()
    given = None if anchor == "state" else tmp_path / "elsewhere" / "anchor.json"
    written(folder, 5, key=KEY, anchor=given)
    saved = None if removed else copy(folder, tmp_path / "saved")
    written(folder, 4, key=KEY, anchor=given)
    roll_back(folder, saved)
    for number in range(more):
        AuditFile(folder / "audit.jsonl", key=KEY, anchor=given).append(records(1, number))

    assert AuditFile(folder / "audit.jsonl", key=KEY, anchor=given).verify() != []


@pytest.mark.parametrize("more", [1, 3, 4, 9])
def test_a_log_that_grew_again_without_its_anchor_is_found_out(tmp_path: Path, more: int) -> None:
    """As long as before, or longer: it is the record that counts, not the number; the next writer does not forget."""
    folder, anchor = tmp_path / "log", tmp_path / "anchor.json"
    folder.mkdir()
    written(folder, 5, key=KEY, anchor=anchor)
    saved = copy(folder, tmp_path / "saved")
    written(folder, 4, key=KEY, anchor=anchor)
    roll_back(folder, saved)
    written(folder, more, 50, key=KEY, anchor=False)

    assert AuditFile(folder / "audit.jsonl", key=KEY, anchor=anchor).verify() != []
    written(folder, 1, key=KEY, anchor=anchor)
    assert AuditFile(folder / "audit.jsonl", key=KEY, anchor=anchor).verify() != []


def test_an_anchor_that_was_tampered_with_is_found_out(tmp_path: Path) -> None:
    """It is signed: nobody without the key can turn it back to a number of their choice."""
    anchor = tmp_path / "anchor.json"
    file = written(tmp_path, 5, key=KEY, anchor=anchor)
    anchor.write_text(anchor.read_text().replace('"seq":5', '"seq":3'))

    assert [one.problem for one in file.verify()] == ["the anchor was changed, or the key is another one"]
    anchor.unlink()
    assert [one.problem for one in file.verify()] == [
        "the anchor is missing: it cannot be told whether the log was rolled back"
    ]


def test_a_function_is_told_of_every_write(tmp_path: Path) -> None:
    """An external sink: what it was told is compared with later, by hand."""
    told: list[tuple[int, str]] = []
    file = AuditFile(tmp_path / "audit.jsonl", anchor=lambda seq, hashed: told.append((seq, hashed)))
    file.append(records(2))
    file.append(records(1))

    assert [seq for seq, _ in told] == [2, 3]
    assert told[-1][1] == _hash(lines(file)[-1])


def test_an_anchor_that_cannot_be_written_keeps_a_log_from_being_written_only_if_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A state folder may be read-only; one's own choice must work."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    written(tmp_path, 2, key=KEY)

    assert caplog.text.count("will not be found out") == 1
    with pytest.raises(AuditError, match="the anchor cannot be written"):
        AuditFile(tmp_path / "other.jsonl", anchor=tmp_path / "file" / "anchor").append(records(1))


def test_several_processes_share_an_anchor(tmp_path: Path) -> None:
    """Each moves it on under the log's own lock: it never says more than the log holds."""
    code = (
        "import sys; from hookline.records.audit import AuditFile\n"
        f"file = AuditFile(sys.argv[1], key={KEY!r})\n"
        "[file.append([{'number': n}]) for n in range(60)]"
    )
    path = tmp_path / "audit.jsonl"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(4)]

    assert [one.wait(120) for one in running] == [0, 0, 0, 0]
    file = AuditFile(path, key=KEY)
    assert file.verify() == []
    assert file.anchor is not None
    found = file.anchor.read(KEY)
    assert found is not None
    assert found.seq == 240


# -- on the command line ---------------------------------------------------------------------------------------------


def verify(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str]:
    code = main(["audit", "verify", *map(str, argv)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_verify_says_what_it_proves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole is one thing without a key, another with one, and another with an anchor."""
    (tmp_path / "key").write_bytes(KEY)
    plain, signed = tmp_path / "plain", tmp_path / "signed"
    plain.mkdir()
    signed.mkdir()
    written(plain, 3)
    file = written(signed, 3, key=KEY)

    assert "anyone who can write to its folder could have rewritten it" in verify(capsys, plain / "audit.jsonl")[1]
    code, said = verify(capsys, file.path, "--key-file", tmp_path / "key")
    assert code == 0
    assert "nor was it rolled back to before record 3" in said
    code, said = verify(capsys, file.path, "--key-file", tmp_path / "key", "--no-anchor")
    assert code == 0
    assert "without an anchor, a rollback of log and head is not seen" in said


def test_a_log_that_is_gone_is_compared_with_its_anchor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Removed with its head, it is not just a file that is not there."""
    (tmp_path / "key").write_bytes(KEY)
    file = written(tmp_path, 3, key=KEY)
    last = _hash(lines(file)[-1])
    roll_back(tmp_path, None)

    code, said = verify(capsys, file.path, "--key-file", tmp_path / "key")
    assert code == 1
    assert "records 1 to 3 were removed" in said
    code, said = verify(capsys, file.path, "--expect", f"3:{last}", "--key-file", tmp_path / "key")
    assert code == 1
    code, said = verify(capsys, tmp_path / "nothing.jsonl")
    assert code == 2


def test_what_a_sink_was_told_is_compared_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--expect SEQ:HASH` is an anchor on the command line."""
    file = written(tmp_path, 3)
    hashes = [_hash(line) for line in lines(file)]

    assert verify(capsys, file.path, "--expect", f"2:{hashes[1]}")[0] == 0
    assert verify(capsys, file.path, "--expect", f"2:{hashes[2]}")[0] == 1
    assert verify(capsys, file.path, "--expect", f"4:{hashes[2]}")[0] == 1
    with pytest.raises(SystemExit):
        verify(capsys, file.path, "--expect", "four")
