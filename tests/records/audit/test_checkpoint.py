"""Checkpoints and proofs: what is signed, what is proved, and what is never signed."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from hookline import Hooks
from hookline.cli.main import main
from hookline.errors import AuditError
from hookline.events import SessionEnd
from hookline.records.audit.checkpoint import (
    COSIGNATURE,
    Checkpoints,
    Frontier,
    SigningKey,
    TreeHead,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_of,
    signature_line,
    verified_note,
    vkey,
)
from hookline.records.audit.log import AuditLog
from hookline.records.audit.log_file import AuditFile
from hookline.testing import bash

pytest.importorskip("nacl", reason="needs PyNaCl: `pip install 'hookline[proofs]'`")

ORIGIN = "audit.example.org/laptop-7"


def log_of(path: Path, count: int) -> AuditFile:
    file = AuditFile(path)
    file.append([{"event": "PreToolUse", "decision": "deny", "n": number} for number in range(count)])
    return file


def signed(path: Path, **options: Any) -> Checkpoints:
    return Checkpoints(path, SigningKey(b"k" * 32), origin=ORIGIN, **options)


# -- the tree --------------------------------------------------------------------------------------------------------


def rfc_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    from hashlib import sha256

    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\x01" + rfc_root(leaves[:k]) + rfc_root(leaves[k:])).digest()


def followed(index: int, size: int, leaf: bytes, path: list[bytes]) -> bytes:
    """RFC 9162, section 2.1.3.2: the verifier's side, which shares nothing with the prover's."""
    from hashlib import sha256

    fn, sn, root = index, size - 1, leaf
    for one in path:
        if fn % 2 or fn == sn:
            root = sha256(b"\x01" + one + root).digest()
            while fn % 2 == 0 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            root = sha256(b"\x01" + root + one).digest()
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0
    return root


def both_roots(first: int, second: int, first_root: bytes, path: list[bytes]) -> tuple[bytes, bytes]:
    """RFC 9162, section 2.1.4.2: the two roots that a consistency proof leads to."""
    from hashlib import sha256

    path = [first_root, *path] if first & (first - 1) == 0 else path
    fn, sn = first - 1, second - 1
    while fn % 2:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for one in path[1:]:
        if fn % 2 or fn == sn:
            fr, sr = sha256(b"\x01" + one + fr).digest(), sha256(b"\x01" + one + sr).digest()
            while fn % 2 == 0 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = sha256(b"\x01" + sr + one).digest()
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0
    return fr, sr


@hypothesis.settings(deadline=None)
@hypothesis.given(st.integers(1, 70), st.data())
def test_the_tree_and_its_proofs_are_those_of_the_rfcs(size: int, data: st.DataObject) -> None:
    """For every size: the root by its definition, and both proofs by the verifier's algorithms."""
    leaves = [leaf_hash(b"%d\n" % number) for number in range(size)]
    index, first = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    grown = Frontier()
    for leaf in leaves:
        grown.add(leaf)

    assert grown.root == root_of(leaves) == rfc_root(leaves)
    assert followed(index, size, leaves[index], inclusion_proof(index, leaves)) == grown.root
    proof = consistency_proof(first, leaves)
    if first == size:
        assert proof == []
    else:
        assert both_roots(first, size, rfc_root(leaves[:first]), proof) == (rfc_root(leaves[:first]), grown.root)


# -- signing -----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_a_signed_note_over_the_raw_lines(tmp_path: Path) -> None:
    """Its text is the log's name, its size and its root; its key is told as tools for notes take it."""
    log = log_of(tmp_path / "audit.jsonl", 5)
    made = signed(log.path)
    note = made.update()
    lines = log.path.read_bytes().splitlines()

    root = base64.b64encode(rfc_root([leaf_hash(line) for line in lines])).decode()
    assert verified_note(note, made.vkey) == f"{ORIGIN}\n5\n{root}\n"
    assert (tmp_path / "audit.jsonl.checkpoint").read_text() == note


def test_what_was_signed_cannot_be_changed(tmp_path: Path) -> None:
    """Another size, another key, another name, no signature: none is the note that was signed."""
    made = signed(log_of(tmp_path / "audit.jsonl", 5).path)
    note = made.update()
    other = vkey(ORIGIN, SigningKey(b"o" * 32).public_bytes)
    forged = [
        (note.replace("\n5\n", "\n4\n"), made.vkey),
        (note, other),
        (note, made.vkey.replace("laptop-7", "laptop-8")),
        (note.partition("\n\n")[0] + "\n\n", made.vkey),
        ("", made.vkey),
        (note, "no key"),
        (note.replace("—", ""), made.vkey),
    ]
    for text, key in forged:
        with pytest.raises(AuditError, match=r"not signed by|not a signed note"):
            verified_note(text, key)


def test_a_witness_cosigns_with_the_time(tmp_path: Path) -> None:
    """C2SP's cosignature/v1: both signatures are under one note, and each is found by its own key."""
    made, witness = signed(log_of(tmp_path / "audit.jsonl", 5).path), SigningKey(b"w" * 32)
    note = made.update()
    text = verified_note(note, made.vkey)
    both = note + signature_line("hub", witness, text, 1_700_000_000)

    assert verified_note(both, made.vkey) == text
    assert verified_note(both, vkey("hub", witness.public_bytes, COSIGNATURE)) == text
    with pytest.raises(AuditError):
        verified_note(both, vkey("hub", witness.public_bytes))


async def test_a_log_signs_itself_every_so_many_records_and_at_the_end_of_a_session(tmp_path: Path) -> None:
    """Beside the log, and beside the anchor if that is a file."""
    anchor = tmp_path / "elsewhere" / "anchor.json"
    log = AuditLog(tmp_path / "audit.jsonl", sync="line", anchor=anchor, checkpoints=3)
    hooks, sizes, note = Hooks(), [], tmp_path / "audit.jsonl.checkpoint"
    hooks.observe(log, inline=True)
    for event in (*(bash("ls") for _ in range(4)), SessionEnd(session_id="s", reason="other"), bash("ls"), bash("ls")):
        await hooks.fire(event)
        sizes.append(TreeHead.parse(note.read_text()).size if note.exists() else 0)

    assert sizes == [0, 0, 3, 3, 5, 6, 6]
    assert anchor.with_name("anchor.json.checkpoint").read_text() == note.read_text()


def test_the_tree_goes_on_through_rotations_that_delete(tmp_path: Path) -> None:
    """What is deleted is in the tree before; a record that is still there can be proved."""
    log = AuditLog(tmp_path / "audit.jsonl", max_bytes=600, keep=1, checkpoints=1_000)
    assert log.checkpoints is not None
    for number in range(40):
        log.file.append([{"n": number}])
    log.checkpoints.update()

    assert TreeHead.parse(log.checkpoints.newest()[0]).size == 40
    assert log.checkpoints.proof_of(40)["index"] == 39
    with pytest.raises(AuditError, match="record 1 is not in it, or not any more"):
        log.checkpoints.proof_of(1)


@pytest.mark.parametrize("lost", ["audit.jsonl.tree", "audit.jsonl.leaves", "audit.jsonl.checkpoint"])
def test_a_part_that_is_lost_is_made_again_from_the_log(tmp_path: Path, lost: str) -> None:
    """They are all made from the log; what is lost of the leaves only stands in the way of proofs."""
    log = log_of(tmp_path / "audit.jsonl", 5)
    before = signed(log.path).update()
    (tmp_path / lost).unlink()
    if lost.endswith("leaves"):
        with pytest.raises(AuditError, match="hookline audit checkpoint"):
            signed(log.path).proof_of(2)
        (tmp_path / "audit.jsonl.tree").unlink()

    assert signed(log.path).update() == before
    assert signed(log.path).proof_of(2)["index"] == 1


def test_nothing_is_signed_that_does_not_follow(tmp_path: Path) -> None:
    """A log that was cut, rolled back or rewritten with all that lies beside it: the anchor's checkpoint tells."""
    anchor = tmp_path / "elsewhere" / "anchor.json"

    def made(name: str) -> Checkpoints:
        return signed(tmp_path / name / "audit.jsonl", anchor=AuditFile("x", anchor=anchor).anchor)

    (tmp_path / "a").mkdir()
    log = log_of(tmp_path / "a" / "audit.jsonl", 5)
    anchor.parent.mkdir()
    made("a").update()
    shutil.copytree(tmp_path / "a", tmp_path / "old")
    log.append([{"n": 6}])
    made("a").update()
    (tmp_path / "b").mkdir()
    AuditFile(tmp_path / "b" / "audit.jsonl").append([{"forged": number} for number in range(9)])

    for name, why in (("old", "it has 5 records, and a checkpoint is known over 6"), ("b", "are not those of")):
        with pytest.raises(AuditError, match=why):
            made(name).update()
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(lines[:3]))
    with pytest.raises(AuditError, match="record 6, which the tree ends with, is not in it any more"):
        made("a").update()


def test_a_failure_to_sign_stops_no_agent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A checkpoint can be made later; the records are written all the same, and the log says why."""
    log = AuditLog(tmp_path / "audit.jsonl", sync="line", checkpoints=1)
    (tmp_path / "audit.jsonl.tree").mkdir()
    hooks = Hooks()
    hooks.observe(log, inline=True)

    assert not hooks.fire_sync(bash("ls")).stop
    assert "audit.jsonl.tree: no checkpoint: Is a directory" in caplog.text


# -- proofs on the command line --------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["audit", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_prove_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint, an inclusion proof, a consistency proof, and a check against a kept checkpoint."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    log = log_of(tmp_path / "audit.jsonl", 4)
    code, note, said = run(capsys, "checkpoint", log.path)
    kept = tmp_path / "kept"
    kept.write_text(note)
    key = said.split()[-1]
    log.append([{"n": 5}, {"n": 6}])
    run(capsys, "checkpoint", log.path)
    _, inclusion, _ = run(capsys, "prove", log.path, "--record", 5)
    _, consistency, _ = run(capsys, "prove", log.path, "--from", kept)
    proof, growth = json.loads(inclusion), json.loads(consistency)
    path = [base64.b64decode(one) for one in proof["path"]]

    assert code == 0
    line = base64.b64decode(proof["leaf"])
    assert json.loads(line)["n"] == 5
    assert base64.b64encode(followed(4, 6, leaf_hash(line), path)).decode() == proof["root"]
    old, new = (base64.b64decode(growth[name]) for name in ("fromRoot", "root"))
    assert both_roots(4, 6, old, [base64.b64decode(one) for one in growth["path"]]) == (old, new)
    assert run(capsys, "verify", log.path, "--checkpoint", kept, "--vkey", key)[0] == 0

    whole = log.path.read_bytes()
    log.path.write_bytes(whole.replace(b'"n":2', b'"n":9'))
    assert run(capsys, "prove", log.path, "--record", 3)[0] == 2
    assert run(capsys, "verify", log.path, "--checkpoint", kept, "--vkey", key)[0] == 1
    assert run(capsys, "verify", log.path, "--checkpoint", kept, "--vkey", "x")[0] == 1
    gone = run(capsys, "verify", log.path, "--checkpoint", kept.with_name("gone"), "--vkey", key)
    assert gone[0] == 1
    assert "it cannot be read: [Errno 2] No such file" in gone[1]
    rewritten = AuditFile(tmp_path / "rewritten.jsonl")
    rewritten.append([{"n": number} for number in range(6)])
    code, _, said = run(capsys, "verify", rewritten.path, "--checkpoint", kept, "--vkey", key)
    assert "whole" not in said  # its chain is, and it is not the log that was signed
    assert code == 1


def test_a_line_that_was_changed_is_seen_though_the_leaves_are_as_they_were(tmp_path: Path) -> None:
    """Comparing with a checkpoint reads the lines themselves; only of deleted files the leaves have to do."""
    log = log_of(tmp_path / "audit.jsonl", 5)
    head = TreeHead.parse(signed(log.path).update())
    signed(log.path).check(head)
    log.path.write_bytes(log.path.read_bytes().replace(b'"n":1', b'"n":7'))
    with pytest.raises(AuditError, match="first 5 records are not those"):
        signed(log.path).check(head)


def test_a_log_whose_oldest_files_are_gone_is_compared_by_their_leaves(tmp_path: Path) -> None:
    """As retention leaves it."""
    log = AuditLog(tmp_path / "audit.jsonl", max_bytes=600, keep=1, checkpoints=10)
    assert log.checkpoints is not None
    for number in range(20):
        log.file.append([{"n": number}])
    head = TreeHead.parse(log.checkpoints.update())
    for number in range(20):
        log.file.append([{"n": number}])

    log.checkpoints.check(head)
    (tmp_path / "audit.jsonl.leaves").write_bytes(bytes(32 * 40))
    with pytest.raises(AuditError, match="first 20 records are not those"):
        log.checkpoints.check(head)


@pytest.mark.parametrize(
    "words, why",
    [
        (["prove", "audit.jsonl", "--record", "1"], "it has no checkpoint; run `hookline audit checkpoint"),
        (["prove", "nowhere.jsonl", "--record", "1"], "no such file; name an audit log"),
        (["checkpoint", "audit.jsonl", "--origin", "a b"], "expected a name without spaces"),
        (["checkpoint", "audit.jsonl", "--signing-key", "audit.jsonl"], "not a key|cannot read the key"),
        (["prove", "audit.jsonl", "--from", "nowhere"], "cannot be read"),
        (["prove", "audit.jsonl", "--from", "audit.jsonl"], "not a checkpoint"),
    ],
)
def test_what_cannot_be_proved_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], why: str
) -> None:
    """One line, and exit code 2."""
    import re

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    log_of(tmp_path / "audit.jsonl", 2)
    code, _, said = run(capsys, *words)

    assert code == 2
    assert re.search(why, said)
