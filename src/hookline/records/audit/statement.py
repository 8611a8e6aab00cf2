"""One decision for a third party: an in-toto Statement, its predicate that of draft-gilda-audit-agent-audit-record.

The tier is always `voluntary` and the observed effect `unknown`: a log that its own machine writes proves no more.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from hookline.records.audit.entry import decision_word_of
from hookline.records.audit.signing import SigningKey, dsse_envelope

PREDICATE = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/agent-audit-record"
"""The draft names no address of its own yet; this is its conformance corpus's."""
_EMPTY_TREE = sha256(b"tree 0\0").hexdigest()
_REPORTED = {"DENY": "deny", "STOP": "deny", "ASK": "deny", "DEFER": "deny", "REWRITE": "permit-with-conditions"}
_DOES_NOT_ASSERT = [
    "what the agent did with the decision, beyond what `hookline.observed` has",
    "that no other record of the same log was left out: ask for a consistency proof",
    "that the clock of the machine was right",
    "the state of files and network before and after: roots, writes and posture are placeholders",
]


def signed_statement(line: bytes, key: SigningKey, key_name: str) -> dict[str, Any]:
    """The Statement about one line of a log, in a DSSE envelope; its payload is canonical JSON (RFC 8785)."""
    payload = msgspec.json.encode(statement(msgspec.json.decode(line, type=dict[str, Any]), line), order="sorted")
    return dsse_envelope(payload, key, key_name)


def statement(record: dict[str, Any], line: bytes) -> dict[str, Any]:
    """The Statement about a record, which stands in `line`."""
    request = _request(record)
    about = f"hookline-record-{record.get('seq', 0)}"
    digests = {about: _digest(request), f"{about}/after": _EMPTY_TREE}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()],
        "predicateType": PREDICATE,
        "predicate": _predicate(record, request, _instant(record)) | {"hookline": _own(record, line)},
    }


def _own(record: dict[str, Any], line: bytes) -> dict[str, Any]:
    """What the draft has no place for."""
    names = ("seq", "prev", "hash", "by", "reasons", "policy", "approval", "observed")
    return {"line": _hash(line.removesuffix(b"\n")), **{name: record[name] for name in names if name in record}}


def _request(record: dict[str, Any]) -> dict[str, str]:
    bound = str(record.get("input_identity") or "").removeprefix("sha256:")
    named = {"action": str(record.get("event")), "resourceId": str(record.get("tool") or record.get("event"))}
    return {**named, "resourceKind": "tool", **({"argumentsDigest": bound} if bound else {})}


def _predicate(record: dict[str, Any], request: dict[str, str], time: str) -> dict[str, Any]:
    bound = request.get("argumentsDigest")
    policy = str(record.get("policy_digest") or "").removeprefix("sha256:") or _hash(b"")
    user, agent = str(record.get("user") or "none"), str(record.get("agent") or record.get("run") or "unknown")
    posture = {"reported": "unsafe_bypass_egress", "reportedDigest": _hash(b"")}
    failed = any(row.get("status") in ("failed", "timeout") for row in record.get("hooks") or ())
    missing = {"inputs": [{"input": "policy-source", "lastResult": "none", "maxAge": 0}]}
    write = {
        "path": "/",
        "preStateDigest": _EMPTY_TREE,
        "postStateDigest": _EMPTY_TREE,
        "requestDigest": "unattributed",
    }
    return {
        "recordId": f"urn:hookline:{record.get('hash', '')}", "tier": "voluntary", "hashAlgorithm": "sha256",
        "agent": {"id": agent, "credentialDigest": _hash(b""), "authentication": "none", "signers": []},
        "delegation": {
            "subject": user, "subjectKind": "none" if user == "none" else "user", "authorityDigest": policy,
        },
        "resource": {
            "kind": request["resourceKind"], "id": request["resourceId"],
            "binding": "digest-bound" if bound else "not-bindable", **({"argumentsDigest": bound} if bound else {}),
        },
        "decision": {
            "action": request["action"], "requestDigest": _digest(request), "decisionPointId": "hookline",
            "reported": "deny" if record.get("blocked") else _REPORTED.get(decision_word_of(record), "permit"),
            "policyDigest": policy, "reportedAt": time,
        },
        "effect": {
            "observed": "unknown", "pathScope": ["/"], "writes": [{**write, "inScope": True}],
            "interval": {
                "beforeRoot": _EMPTY_TREE, "afterRoot": _EMPTY_TREE, "baseResolution": "empty-tree",
                "openedAt": time, "sealedAt": time,
            },
        },
        "agreement": "indeterminate",
        "correlation": {"id": str(record.get("run") or "unknown"), "scope": "producer", "timeBasis": "asserted"},
        "posture": {
            **posture, "observed": posture["reported"], "observedDigest": posture["reportedDigest"],
            "assessedAt": time, "agreement": "agree",
        },
        "remediation": [], "observation": {"vantage": "self", "coverage": {"scopeComplete": False, "gaps": []}},
        "fieldEvidence": dict.fromkeys(
            ("agent", "correlation", "decision", "delegation", "posture", "remediation", "resource"),
            "producer-asserted",
        ),
        "doesNotAssert": _DOES_NOT_ASSERT, "issuedAt": time,
        "evaluation": {"status": "not-evaluated", **missing, "unavailableInput": ["policy-source"]}
        if failed else {"status": "evaluated", "inputs": []},
        **({"oversight": {"act": "decision"}} if record.get("approval") else {}),
    }  # fmt: skip


def _instant(record: dict[str, Any]) -> str:
    try:
        moment = datetime.fromisoformat(str(record.get("time"))).astimezone(UTC)
    except ValueError:
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _digest(value: object) -> str:
    return _hash(msgspec.json.encode(value, order="sorted"))


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()
