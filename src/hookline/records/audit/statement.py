"""One decision for a third party: an in-toto Statement, its predicate that of draft-gilda-audit-agent-audit-record.

What is always the same is in `statement.json`. The tier is `voluntary` and the observed effect `unknown`: a log that
its own machine writes proves no more.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from hookline.records.audit.entry import decision_word_of
from hookline.records.audit.signing import SigningKey, dsse_envelope

PREDICATE = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/agent-audit-record"
"""The draft names no address of its own yet; this is its conformance corpus's."""
_REPORTED = {"DENY": "deny", "STOP": "deny", "ASK": "deny", "DEFER": "deny", "REWRITE": "permit-with-conditions"}
_UNAVAILABLE = {
    "status": "not-evaluated", "inputs": [{"input": "policy-source", "lastResult": "none", "maxAge": 0}],
    "unavailableInput": ["policy-source"],
}  # fmt: skip
_OWN = ("seq", "prev", "hash", "by", "reasons", "policy", "approval", "observed")
"""What the draft has no place for."""


def signed_statement(line: bytes, key: SigningKey, key_name: str) -> dict[str, Any]:
    """The Statement about one line of a log, in a DSSE envelope; its payload is canonical JSON (RFC 8785)."""
    payload = msgspec.json.encode(statement(msgspec.json.decode(line, type=dict[str, Any]), line), order="sorted")
    return dsse_envelope(payload, key, key_name)


def statement(record: dict[str, Any], line: bytes) -> dict[str, Any]:
    """The Statement about a record, which stands in `line`."""
    said = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes())
    resource = {"kind": "tool", "id": str(record.get("tool") or record.get("event")), "binding": "not-bindable"}
    if bound := str(record.get("input_identity") or "").removeprefix("sha256:"):
        resource |= {"binding": "digest-bound", "argumentsDigest": bound}
    action, time = str(record.get("event")), _instant(record)
    request = {"action": action, "resourceId": resource["id"], "resourceKind": "tool"}
    request |= {"argumentsDigest": bound} if bound else {}
    digest = _hash(msgspec.json.encode(request, order="sorted"))
    policy = str(record.get("policy_digest") or "").removeprefix("sha256:") or _hash(b"")
    user = str(record.get("user") or "none")
    word = "deny" if record.get("blocked") else _REPORTED.get(decision_word_of(record), "permit")
    said["agent"]["id"] = str(record.get("agent") or record.get("run") or "unknown")
    said["correlation"]["id"] = str(record.get("run") or "unknown")
    said["effect"]["interval"] |= {"openedAt": time, "sealedAt": time}
    said["posture"]["assessedAt"] = time
    said |= {
        "recordId": f"urn:hookline:{record.get('hash', '')}", "issuedAt": time, "resource": resource,
        "delegation": {
            "subject": user, "subjectKind": "none" if user == "none" else "user", "authorityDigest": policy,
        },
        "decision": {
            "action": action, "requestDigest": digest, "decisionPointId": "hookline", "reported": word,
            "policyDigest": policy, "reportedAt": time,
        },
        "hookline": {"line": _hash(line.removesuffix(b"\n")), **{one: record[one] for one in _OWN if one in record}},
    }  # fmt: skip
    if any(row.get("status") in ("failed", "timeout") for row in record.get("hooks") or ()):
        said["evaluation"] = _UNAVAILABLE
    if record.get("approval"):
        said["oversight"] = {"act": "decision"}
    name = f"hookline-record-{record.get('seq', 0)}"
    digests = {name: digest, f"{name}/after": said["effect"]["interval"]["afterRoot"]}
    subject = [{"name": about, "digest": {"sha256": value}} for about, value in digests.items()]
    type_ = "https://in-toto.io/Statement/v1"
    return {"_type": type_, "subject": subject, "predicateType": PREDICATE, "predicate": said}


def _instant(record: dict[str, Any]) -> str:
    try:
        moment = datetime.fromisoformat(str(record.get("time"))).astimezone(UTC)
    except ValueError:
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()
