"""Our checkpoints, proofs and statements, verified by tools that are not ours; two forgeries are refused by each."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hookline import Hooks, deny
from hookline.events import PreToolUse
from hookline.records.audit.checkpoint import Checkpoints, SigningKey, dsse_envelope, holds
from hookline.records.audit.export import PREDICATE, signed_statement, statement
from hookline.records.audit.log import AuditLog
from hookline.testing import bash

pytest.importorskip("nacl", reason="needs PyNaCl: `pip install 'hookline[proofs]'`")

NODE = Path(".cache/node/node_modules").resolve()
ORIGIN = "audit.example.org/laptop-7"
SCRIPT = """
const fs = require('fs'), crypto = require('crypto');
const { verifyCheckpoint } = require('@sigstore/verify/dist/tlog/checkpoint.js');
const { verifyMerkleInclusion } = require('@sigstore/verify/dist/tlog/merkle.js');
const { dsse } = require('@sigstore/core');
const given = JSON.parse(fs.readFileSync(0)), bytes = (text) => Buffer.from(text, 'base64');
const key = crypto.createPublicKey({key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'),
  bytes(given.key)]), format: 'der', type: 'spki'});
const log = {logID: bytes(given.logid), publicKey: key, baseURL: 'https://' + given.origin,
  validFor: {start: new Date(0), end: new Date(8e15)}};
const entry = (proof) => ({logIndex: String(proof.index), canonicalizedBody: bytes(proof.leaf), inclusionProof: {
  logIndex: String(proof.index), treeSize: String(proof.size), rootHash: bytes(proof.root),
  hashes: proof.path.map(bytes), checkpoint: {envelope: proof.checkpoint}}});
const tried = (run) => { try { return run() !== false; } catch (problem) { return problem.message; } };
const whole = (proof) => tried(() => verifyMerkleInclusion(entry(proof), verifyCheckpoint(entry(proof), [log])));
const envelope = (one) => tried(() => crypto.verify(null, dsse.preAuthEncoding(one.payloadType, bytes(one.payload)),
  key, bytes(one.signatures[0].sig)));
console.log(JSON.stringify({proofs: given.proofs.map(whole), envelopes: given.envelopes.map(envelope)}));
"""


class Evidence:
    """A log of eleven decisions, with proofs and statements of each."""

    def __init__(self, folder: Path) -> None:
        log, hooks = AuditLog(folder / "audit.jsonl", sync="line", identities=True), Hooks()
        hooks.observe(log, inline=True)
        hooks.add(PreToolUse, lambda event: deny("no") if "rm" in str(event.tool_input) else None, name="no-rm")
        for number in range(11):
            hooks.fire_sync(bash(f"{'rm' if number % 2 else 'ls'} {number}", session_id="s1"))
        self.key = SigningKey(b"k" * 32)
        signed = Checkpoints(log.file.path, self.key, origin=ORIGIN)
        signed.update()
        self.proofs = [signed.proof_of(record) for record in range(1, 12)]
        lines = [base64.b64decode(proof["leaf"]) for proof in self.proofs]
        self.statements = [statement(json.loads(line), line) for line in lines]
        self.envelopes = [signed_statement(line, self.key, "k1") for line in lines]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return Evidence(tmp_path_factory.mktemp("evidence"))


def forged(proof: dict[str, Any]) -> list[dict[str, Any]]:
    """A denial that looks like a permission, and a log that has lost its last record."""
    leaf = base64.b64decode(proof["leaf"]).replace(b'"deny"', b'"pass"')
    record = {**proof, "leaf": base64.b64encode(leaf).decode()}
    return [record, {**proof, "checkpoint": proof["checkpoint"].replace("\n11\n", "\n10\n")}]


def forged_envelope(envelope: dict[str, Any]) -> dict[str, Any]:
    payload = base64.b64decode(envelope["payload"]).replace(b'"deny"', b'"permit"')
    return {**envelope, "payload": base64.b64encode(payload).decode()}


def test_sigstore_verifies_checkpoint_inclusion_and_envelope(evidence: Evidence) -> None:
    """npm's @sigstore/verify and @sigstore/core: every record, every envelope; the forgeries not."""
    if not (NODE / "@sigstore" / "verify").exists():
        pytest.skip("needs npm's @sigstore/verify; `make node_modules` installs it")
    denied = evidence.proofs[1]
    logid = base64.b64decode(denied["checkpoint"].splitlines()[-1].split()[-1])[:4]
    given = {
        "proofs": [*evidence.proofs, *forged(denied)],
        "envelopes": [*evidence.envelopes, forged_envelope(evidence.envelopes[1])],
        "key": base64.b64encode(evidence.key.public_bytes).decode(),
        "logid": base64.b64encode(logid + bytes(28)).decode(),
        "origin": ORIGIN,
    }
    ran = subprocess.run(
        ["node", "-e", SCRIPT], input=json.dumps(given).encode(), capture_output=True, check=True, cwd=NODE.parent
    )
    found = json.loads(ran.stdout)

    assert found["proofs"][:11] == [True] * 11
    assert [one is not True for one in found["proofs"][11:]] == [True, True]
    assert found["envelopes"] == [*[True] * 11, False]


def test_securesystemslib_verifies_the_envelope(evidence: Evidence) -> None:
    """PyPI's securesystemslib, the library of TUF and in-toto."""
    dsse = pytest.importorskip("securesystemslib.dsse", reason="needs `securesystemslib`, as `make test-all` has")
    signer = pytest.importorskip("securesystemslib.signer")
    pytest.importorskip("cryptography")
    public = {"public": evidence.key.public_bytes.hex()}
    key = signer.SSlibKey("k1", "ed25519", "ed25519", public)

    for made in evidence.envelopes:
        assert set(dsse.Envelope.from_dict(json.loads(json.dumps(made))).verify([key], 1)) == {"k1"}
    for bad in (forged_envelope(evidence.envelopes[1]), {**evidence.envelopes[1], "payloadType": "text/plain"}):
        with pytest.raises(Exception, match=r"[Aa]ccepted signatures|verif"):
            dsse.Envelope.from_dict(json.loads(json.dumps(bad))).verify([key], 1)


def test_in_toto_takes_the_statement(evidence: Evidence) -> None:
    """PyPI's in-toto-attestation: a Statement v1 with subjects, digests and a predicate."""
    module = pytest.importorskip("in_toto_attestation.v1.statement", reason="needs `in-toto-attestation`")
    json_format = pytest.importorskip("google.protobuf.json_format")
    proto = pytest.importorskip("in_toto_attestation.v1.statement_pb2")

    for made in evidence.statements:
        module.Statement.copy_from_pb(json_format.ParseDict(made, proto.Statement())).validate()
    for bad in ({**evidence.statements[0], "subject": []}, {**evidence.statements[0], "predicateType": ""}):
        with pytest.raises(ValueError, match=r"(?i)subject|predicate type"):
            module.Statement.copy_from_pb(json_format.ParseDict(bad, proto.Statement())).validate()


def test_the_drafts_reader_takes_the_record(evidence: Evidence) -> None:
    """The reference reader of draft-gilda-audit-agent-audit-record, from PyPI, calls ours valid, and forgeries not."""
    reader = pytest.importorskip("agent_evidence_vectors.auditrecord", reason="needs `agent-evidence-vectors`")
    policy = reader.Policy(PREDICATE, evidence.key.public_bytes.hex())

    def verdict(envelope: dict[str, Any]) -> str:
        return str(reader.verify(json.dumps(envelope).encode(), policy).verdict)

    assert {verdict(envelope) for envelope in evidence.envelopes} == {"valid"}
    assert verdict(forged_envelope(evidence.envelopes[1])) == "malformed"
    claimed = json.loads(base64.b64decode(evidence.envelopes[1]["payload"]))
    claimed["predicate"]["tier"] = "authoritative"
    payload = json.dumps(claimed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    report = reader.verify(json.dumps(dsse_envelope(payload, evidence.key, "k1")).encode(), policy)
    assert report.codes == ["tier-overclaim-vantage"]


def test_the_drafts_vectors_are_as_expected() -> None:
    """All 128 members: the signatures by our own Ed25519 and DSSE, the rules by the reader that the wheel brings."""
    reader = pytest.importorskip("agent_evidence_vectors.auditrecord", reason="needs `agent-evidence-vectors`")
    corpus = Path(reader.__file__).parent / "corpora" / "vectors-agent-audit-record"
    manifest = json.loads((corpus / "MANIFEST.json").read_text())
    observer = bytes.fromhex(manifest["keys"]["observer"]["publicKey"])
    policy = reader.Policy(manifest["predicateType"], observer.hex())
    wrong, unsigned, count = [], set(), 0
    for row in manifest["vectors"]:
        text = json.loads((corpus / row["file"]).read_text())
        members = text["records"] if "records" in text else [text.get("envelope", text)]
        count += 1
        for envelope in members:
            payload = msgspec.json.encode(msgspec.json.decode(base64.b64decode(envelope["payload"])), order="sorted")
            signed = b"DSSEv1 %d %s %d %s" % (28, b"application/vnd.in-toto+json", len(payload), payload)
            if not holds(observer, signed, base64.b64decode(envelope["signatures"][0]["sig"])):
                unsigned.add(row["draftId"])
        verdicts = {reader.verify(json.dumps(one).encode(), policy).verdict for one in members}
        wrong += [] if verdicts & set(reader.conforming_verdicts(row)) else [row["draftId"]]

    assert (count, wrong) == (128, [])
    assert unsigned == {"T2", "T3"}  # another serialization was signed; a name stands there twice
