"""The hub's mirror of a machine's log: exact, once, and honest about gaps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookline.errors import AuditError
from hookline.fleet.ledger import Ledger
from hookline.fleet.members import MachineKey, TeamKey, log_origin, vkey_of, witness_name
from hookline.records.audit import AuditFile
from hookline.records.audit.checkpoint import COSIGNATURE, Checkpoints, verified_note, vkey


def lines(path: Path, count: int) -> list[bytes]:
    AuditFile(path).append({"event": "PreToolUse", "log": path.name, "number": number} for number in range(count))
    return path.read_bytes().splitlines(keepends=True)


def test_a_mirror_is_the_log_itself(tmp_path: Path) -> None:
    """Byte for byte, and `audit verify` finds nothing."""
    sent = lines(tmp_path / "audit.jsonl", 5)
    mirror = Ledger(tmp_path / "hub").mirror("m1")

    assert mirror.take(b"".join(sent[:2])) == []
    assert mirror.take(b"".join(sent[2:])) == []
    assert mirror.path.read_bytes() == b"".join(sent)
    assert AuditFile(mirror.path).verify() == []


def test_what_comes_twice_is_there_once(tmp_path: Path) -> None:
    """Whole blocks, parts of them, and blocks long past, also after the hub was started again."""
    sent = lines(tmp_path / "audit.jsonl", 6)
    Ledger(tmp_path / "hub").mirror("m1").take(b"".join(sent[:4]))
    again = Ledger(tmp_path / "hub").mirror("m1")

    assert again.take(b"".join(sent[:4])) == []
    assert again.take(b"".join(sent[:2])) == []
    assert again.take(b"".join(sent[2:])) == []
    assert again.path.read_bytes() == b"".join(sent)


def test_a_removed_record_is_found_and_named(tmp_path: Path) -> None:
    """Whoever takes a line out of the machine's log is seen at the hub."""
    sent = lines(tmp_path / "audit.jsonl", 5)
    ledger = Ledger(tmp_path / "hub")

    [problem] = ledger.mirror("m1").take(b"".join(sent[:2] + sent[3:]))

    assert str(problem) == "m1: record 4: record 3 is missing: found record 4"
    assert Ledger(tmp_path / "hub").problems() == [problem]


def test_a_chain_that_begins_again_is_kept_and_named(tmp_path: Path) -> None:
    """A machine whose log was deleted does not pass as one that has nothing to say."""
    ledger = Ledger(tmp_path / "hub")
    ledger.mirror("m1").take(b"".join(lines(tmp_path / "audit.jsonl", 5)))
    other = lines(tmp_path / "other.jsonl", 2)

    [problem] = ledger.mirror("m1").take(b"".join(other))

    assert "out of order: found record 1 after record 5" in problem.problem


def test_a_torn_end_is_cut_off(tmp_path: Path) -> None:
    """The hub was killed while it wrote; nobody was told that the line is there."""
    sent = lines(tmp_path / "audit.jsonl", 3)
    mirror = Ledger(tmp_path / "hub").mirror("m1")
    mirror.take(b"".join(sent[:2]))
    with mirror.path.open("ab") as file:
        file.write(sent[2][:20])

    assert Ledger(tmp_path / "hub").mirror("m1").take(b"".join(sent)) == []
    assert mirror.path.read_bytes() == b"".join(sent)


def test_looking_never_cuts_what_is_being_written(tmp_path: Path) -> None:
    """Only the hub that writes a mirror repairs its end; a command beside it must not."""
    sent = lines(tmp_path / "audit.jsonl", 3)
    mirror = Ledger(tmp_path / "hub").mirror("m1")
    mirror.take(b"".join(sent[:2]))
    with mirror.path.open("ab") as file:
        file.write(sent[2][:40])

    assert Ledger(tmp_path / "hub").mirror("m1").last.seq == 2
    assert mirror.path.read_bytes() == b"".join(sent[:2]) + sent[2][:40]
    assert Ledger(tmp_path / "hub").mirror("m1").take(sent[2]) == []
    assert mirror.path.read_bytes() == b"".join(sent)


def test_a_machine_that_goes_back_to_an_older_policy_is_named(tmp_path: Path) -> None:
    """Once for each step; records that were judged while a policy came are not a step, nor are those without one."""
    cases = {
        (1, 1, 2, 2): [],
        (0, 0, 1): [],
        (1, 2, 1, 2): [],
        (1, None, 2): [],
        (2, *[3] * 20, 2, 2, 2): ["judged with policy 2, after policy 3 was in force: the machine went back"],
        (3, 0, 0): ["judged with policy 0, after policy 3 was in force: the machine went back"],
    }
    for number, (versions, expected) in enumerate(cases.items()):
        log = tmp_path / f"{number}.jsonl"
        records = [{"event": "x"} | ({} if one is None else {"policy": one}) for one in versions]
        AuditFile(log).append(records)
        sent = log.read_bytes().splitlines(keepends=True)
        found = []
        for block in (sent[:1], sent[1:]):  # the hub is started again in between
            found += Ledger(tmp_path / "hub").mirror(f"m{number}").take(b"".join(block))
        assert [one.problem for one in found] == expected, versions


# -- the hub as a witness --------------------------------------------------------------------------------------------

MACHINE, TEAM = MachineKey(b"m" * 32), TeamKey(b"t" * 32)


def checkpoint(log: Path, key: MachineKey = MACHINE) -> str:
    return Checkpoints(log, key, origin=log_origin("m1")).update()


def test_a_checkpoint_over_what_the_hub_has_is_cosigned(tmp_path: Path) -> None:
    """The machine's signature and the hub's are under one note; each newer one takes its place."""
    log, mirror = tmp_path / "audit.jsonl", Ledger(tmp_path / "hub").mirror("m1")
    hub = vkey(witness_name(TEAM), TEAM.public_bytes, COSIGNATURE)
    for count in (3, 2):
        lines(log, count)
        mirror.take(log.read_bytes())
        note = checkpoint(log)

        assert mirror.witness(note, MACHINE.public, TEAM) is None
        cosigned = mirror.cosigned_path.read_text()
        assert verified_note(cosigned, vkey_of("m1", MACHINE.public)) == verified_note(cosigned, hub)
        assert cosigned.startswith(note)


def test_a_checkpoint_ahead_of_the_mirror_waits(tmp_path: Path) -> None:
    """The hub signs what it has seen, and nothing else; it is not a problem either."""
    sent, mirror = lines(tmp_path / "audit.jsonl", 3), Ledger(tmp_path / "hub").mirror("m1")
    mirror.take(b"".join(sent[:2]))

    assert mirror.witness(checkpoint(tmp_path / "audit.jsonl"), MACHINE.public, TEAM) is None
    assert not mirror.cosigned_path.exists()


def test_a_machine_that_signs_another_log_than_it_sent_is_told(tmp_path: Path) -> None:
    """A fork, a stranger's signature, and a text that is none: each is a problem, told once, and never cosigned."""
    mirror = Ledger(tmp_path / "hub").mirror("m1")
    mirror.take(b"".join(lines(tmp_path / "audit.jsonl", 3)))
    lines(tmp_path / "other.jsonl", 3)
    fork, stranger = (
        checkpoint(tmp_path / "other.jsonl"),
        checkpoint(tmp_path / "audit.jsonl", MachineKey(os.urandom(32))),
    )
    found = [mirror.witness(note, MACHINE.public, TEAM) for note in (fork, fork, stranger, "x")]

    assert ["first 3 records are not those" in str(one) for one in found] == [True, True, False, False]
    assert len(mirror.problems()) == 3
    assert not mirror.cosigned_path.exists()
    with pytest.raises(AuditError):
        verified_note(stranger, vkey_of("m1", MACHINE.public))
