"""A yes is for one call: judged on the cases of `agent-evidence-vectors`, and on each field of a call."""

import datetime as dt
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hookline.records.approvals.questions import AskedCall, AskedQuestion, unbound

CONTRACT = "https://probityai.github.io/agent-evidence-vectors/contract/approval-binding/v1"


def seconds(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


def call_in(row: dict[str, Any], payload: str, release: str) -> AskedCall:
    """A row of a case in our words: event and phase are one event, the principal's session is whose call it is."""
    return AskedCall(
        event=f"{row['event']} {row['phase']}", session=row["principal"], cwd=row["target"], tool=row["tool"],
        input=payload, policy=release,
    )  # fmt: skip


def grant_in(row: dict[str, Any], release: str) -> AskedQuestion:
    call = call_in(row, row["payloadSha256"], release)
    return AskedQuestion(id=row["approvalId"], by=row["approver"], key=row["keyId"], call=call,
                         at=seconds(row["issuedAt"]), until=seconds(row["expiresAt"]))  # fmt: skip


def judged(folder: Path) -> str:
    """What we say to a case; the record's version is the reader's business, not the binding's."""
    record = json.loads((folder / "record.json").read_text())
    if record.get("contractId") != CONTRACT:
        return "contract_id_unknown" if "contractId" in record else "contract_id_missing"
    release, decided = record["policyRelease"], seconds(record["decisionTime"])
    last = seconds(release["lastServedAt"]) + release["graceSeconds"]
    served = seconds(release["firstServedAt"]) <= decided <= last if release["lookup"] == "ok" else None
    payload = hashlib.sha256((folder / record["use"]["payloadFile"]).read_bytes()).hexdigest()
    return unbound(
        grant_in(record["approval"], release["releaseId"]), call_in(record["use"], payload, release["releaseId"]),
        at=seconds(record["use"]["usedAt"]), keys=record["trustedKeys"], used=record.get("consumedApprovalIds", ()),
        presented=[grant_in(row, release["releaseId"]) for row in record["presentedApprovals"]], policy_holds=served,
    )  # fmt: skip


def test_the_published_cases_are_judged_as_they_say() -> None:
    """`vectors-approval-binding`: 23 of 23, each refusal for its own reason."""
    vectors = pytest.importorskip("agent_evidence_vectors")
    root = Path(vectors.__file__).parent / "corpora" / "vectors-approval-binding"
    rows = json.loads((root / "MANIFEST.json").read_text())["vectors"]
    expected = {row["id"]: row["expected"]["reason"].replace("bound", "", row["expected"]["reason"] == "bound")
                for row in rows}  # fmt: skip

    assert {row["id"]: judged(root / row["path"]) for row in rows} == expected
    assert len(expected) == 23


def test_every_field_of_a_call_is_part_of_its_identity() -> None:
    """What differs in anything is another call, and a yes to one is not a yes to the other."""
    call = AskedCall(
        event="PreToolUse", session="s", agent="a", cwd="/p", tool="Bash", input='{"command":"ls"}', policy="x"
    )
    others = [msgspec.structs.replace(call, **{name: "other"}) for name in call.__struct_fields__]
    grant = AskedQuestion(id="A-1", by="ada", key="k", call=call, at=1.0, until=9.0)

    def refusal(use: AskedCall) -> str:
        return unbound(grant, use, at=2.0, keys={"ada": "k"}, policy_holds=use.policy == call.policy)

    assert len({one.identity for one in (call, *others)}) == len(others) + 1
    assert refusal(call) == ""
    assert all(map(refusal, others))
