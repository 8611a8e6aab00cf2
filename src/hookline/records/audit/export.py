"""Audit records in the words of others: OpenTelemetry's logs, OCSF for a SIEM, Parquet for analysts, and statements.

What has no place of its own there is kept as it was written, so nothing is lost.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from hookline.errors import extra
from hookline.records.audit.checkpoint import SigningKey, dsse_envelope
from hookline.records.audit.entry import decision_word_of

Record = dict[str, Any]
_BATCH = 20_000
SEVERITY = {"deny": ("WARN", 13), "stop": ("WARN", 13), "ask": ("INFO2", 10), "defer": ("INFO2", 10)}
"""OpenTelemetry's words and numbers; everything else is INFO, 9."""
_COLUMNS = ("time", "machine", "seq", "run", "user", "cwd", "event", "tool", "decision", "blocked", "by", "ms", "hash")


def _moment(record: Record) -> datetime:
    try:
        return datetime.fromisoformat(str(record.get("time"))).astimezone(UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def otlp(record: Record, machine: str = "") -> Record:
    """One line of OTLP's JSON file format, as a collector's `otlpjsonfile` receiver reads it."""
    decision = str(record.get("decision", ""))
    text, number = SEVERITY.get(decision, ("INFO", 9))
    attributes = {
        "event.name": f"hookline.{record.get('event', '')}",
        "hookline.decision": decision,
        "hookline.decided_by": record.get("by", ""),
        "hookline.blocked": bool(record.get("blocked")),
        "hookline.record.sequence": _whole(record.get("seq")),
        "hookline.record.hash": record.get("hash", ""),
        "gen_ai.tool.name": record.get("tool", ""),
        "gen_ai.conversation.id": record.get("run", ""),
    }
    resource = {"service.name": "hookline", "host.id": machine, "enduser.id": record.get("user", "")}
    log = {
        "timeUnixNano": f"{int(_moment(record).timestamp() * 1_000_000)}000",
        "severityText": text,
        "severityNumber": number,
        "body": {"stringValue": msgspec.json.encode(record).decode()},
        "attributes": _pairs(attributes),
    }
    scope = {"scope": {"name": "hookline.audit"}, "logRecords": [log]}
    return {"resourceLogs": [{"resource": {"attributes": _pairs(resource)}, "scopeLogs": [scope]}]}


def columns(record: Record, machine: str = "") -> Record:
    """A row for analysts: what is asked for most has a column, and the whole record is in `record`."""
    row = {name: record.get(name) for name in _COLUMNS}
    return {
        **{name: None if value is None else str(value) for name, value in row.items()},
        "time": int(_moment(record).timestamp() * 1_000_000),
        "machine": machine,
        "seq": _whole(record.get("seq")),
        "blocked": bool(record.get("blocked")),
        "ms": float(record["ms"]) if isinstance(record.get("ms"), int | float) else None,
        "reasons": "\n".join(map(str, record.get("reasons") or ())),
        "record": msgspec.json.encode(record).decode(),
    }


_OCSF: Record = msgspec.json.decode(Path(__file__).with_name("ocsf.json").read_bytes())
"""What belongs to a class and to a verdict, numbers with their captions."""
_ACS = {"DENY": "deny", "STOP": "deny", "ASK": "ask", "DEFER": "defer", "REWRITE": "modify", "REPLACE": "modify"}
"""ACS' word for a decision, by the word that the log shows; every other word is let through."""


def ocsf(record: Record, machine: str = "") -> Iterator[Record]:
    """A record as events of OCSF.

    A shell line is a Process Activity, another tool an API Activity, a session or a subagent an Authentication, and
    everything else an Application Lifecycle; what was not simply let through is a Detection Finding besides.
    """
    changed = "modify" if "rewritten" in record or "replaced" in record else "allow"
    verdict = _ACS.get(decision_word_of(record), changed)
    event, tool, command = str(record.get("event") or "unknown"), str(record.get("tool") or ""), _command(record)
    base = _base(record, event, verdict)
    made_by = {"application": {"name": "hookline"}, "ai_role_id": 3, "ai_role": "Tool"}
    about = {"message_context": {**made_by, "uid": _step(record), "name": tool or event}}
    host = machine or "localhost"
    device = {"uid": host, "hostname": host, "type_id": 0, "type": "Unknown"}
    if command is not None:
        process = {"name": next(iter(command.split()), tool), "cmd_line": command, "uid": _step(record)}
        yield {**base, **about, **_of("process", 1, "Launch", record), "device": device, "process": process}
    elif tool:
        server = tool.split("__")[1] if tool.startswith("mcp__") and tool.count("__") > 1 else "agent"
        api = {"operation": tool, "service": {"name": server or "agent"}, "request": {"uid": _step(record)}}
        endpoint = {"uid": host, "name": host}
        yield {**base, **about, **_of("api", 99, event, record), "api": api, "src_endpoint": endpoint}
    elif event.startswith(("Session", "Subagent")):
        activity = (1, "Logon") if event.endswith("Start") else (2, "Logoff")
        name = str(record.get("agent_type") or record.get("agent") or "agent")
        user = {"name": name, "type_id": 99, "type": "AI Agent"}
        session = {"uid": _session(record)}
        made = _of("authentication", *activity, record)
        yield {**base, **made, "user": user, "session": session, "service": {"name": "agent"}, "device": device}
    else:
        app = {"name": "agent", "vendor_name": "Hookline"}
        yield {**base, **_of("lifecycle", 99, event, record), "app": app, "device": device}
    if verdict != "allow":
        actor, what = base.pop("actor"), tool or event
        rule = {"name": str(record.get("by") or "hookline"), "type_id": 1, "type": "Rule"}
        about = {"process": {"cmd_line": command, "uid": _step(record)}} if command else {"api": {"operation": what}}
        uid = str(record.get("hash") or _step(record))
        found = {"uid": uid, "title": f"{what}: {verdict}", "desc": base["message"], "analytic": rule}
        new = {"status_id": 1, "status": "New", "evidences": [{"actor": actor, **about}], "finding_info": found}
        yield {**base, **_of("finding", 1, "Create", record), **new}


def _of(kind: str, activity: int, name: str, record: Record) -> Record:
    """What says which class an event is of."""
    about = _OCSF["classes"][kind]
    own = {
        "uid": str(record.get("hash") or _step(record)), "sequence": _whole(record.get("seq")),
        "correlation_uid": f"{_session(record)}:{_step(record)}", "original_time": str(record.get("time") or "unknown"),
    }  # fmt: skip
    kinds = {"activity_id": activity, "activity_name": name, "type_uid": about["class_uid"] * 100 + activity}
    return {**about, **kinds, "metadata": {**about["metadata"], **own}}


def _base(record: Record, event: str, verdict: str) -> Record:
    session = _session(record)
    acs = {"session_id": session, "request_id": _step(record), "decision": verdict}
    rest = {key: value for key, value in record.items() if key not in ("hash", "seq")}
    return {
        "time": int(_moment(record).timestamp() * 1_000), **_OCSF["verdicts"][verdict],
        "message": "; ".join(map(str, record.get("reasons") or ())) or event,
        "actor": {
            "user": {"name": str(record.get("user") or "unknown"), "type_id": 1, "type": "User"},
            "session": {"uid": session}, "app_name": "hookline",
        },
        "unmapped": {"acs": acs, "hookline": rest},
    }  # fmt: skip


def _command(record: Record) -> str | None:
    """The shell line that a record is about; the rewritten one if there is one."""
    for given in (record.get("rewritten"), record.get("input")):
        if record.get("tool") and isinstance(given, Mapping) and isinstance(given.get("command"), str):
            return str(given["command"])
    return None


def _session(record: Record) -> str:
    return str(record.get("run") or "unknown")


def _step(record: Record) -> str:
    return str(record.get("tool_use_id") or str(record.get("hash") or "")[:32] or record.get("seq") or "unknown")


FORMATS: dict[str, Callable[[Record, str], Iterator[Record]]] = {
    "otel": lambda record, machine: iter((otlp(record, machine),)),
    "ocsf": ocsf,
}  # the formats that are lines of JSON; a record may become several


def lines(records: Iterable[tuple[str, Record]], form: str) -> Iterator[bytes]:
    """Machine and record, as lines."""
    return (msgspec.json.encode(one) + b"\n" for machine, record in records for one in FORMATS[form](record, machine))


def _pairs(values: Record) -> list[Record]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value not in ("", None)]


def _value(value: object) -> Record:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": str(value)}


def write_parquet(path: Path, records: Iterable[tuple[str, Record]]) -> int:
    """Write a Parquet file with a row for each record, a batch at a time; how many."""
    with extra("Parquet", "parquet"):
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    kinds = {"time": pa.timestamp("us", tz="UTC"), "seq": pa.int64(), "blocked": pa.bool_(), "ms": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in (*_COLUMNS, "reasons", "record")])
    rows, count = (columns(record, machine) for machine, record in records), 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        while batch := list(islice(rows, _BATCH)):
            file.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


# -- one decision for a third party: an in-toto Statement, its predicate that of draft-gilda-audit-agent-audit-record --
#
# What is always the same is in `statement.json`. The tier is `voluntary` and the observed effect `unknown`: a log that
# its own machine writes proves no more.

PREDICATE = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/agent-audit-record"
"""The draft names no address of its own yet; this is its conformance corpus's."""
_REPORTED = {"DENY": "deny", "STOP": "deny", "ASK": "deny", "DEFER": "deny", "REWRITE": "permit-with-conditions"}
_UNAVAILABLE = {
    "status": "not-evaluated", "inputs": [{"input": "policy-source", "lastResult": "none", "maxAge": 0}],
    "unavailableInput": ["policy-source"],
}  # fmt: skip
_OWN = ("seq", "prev", "hash", "by", "reasons", "policy", "approval", "observed")  # what the draft has no place for


def signed_statement(line: bytes, key: SigningKey, key_name: str) -> Record:
    """The Statement about one line of a log, in a DSSE envelope; its payload is canonical JSON (RFC 8785)."""
    payload = msgspec.json.encode(statement(msgspec.json.decode(line, type=dict[str, Any]), line), order="sorted")
    return dsse_envelope(payload, key, key_name)


def statement(record: Record, line: bytes) -> Record:
    """The Statement about a record, which stands in `line`."""
    said = msgspec.json.decode(Path(__file__).with_name("statement.json").read_bytes())
    resource = {"kind": "tool", "id": str(record.get("tool") or record.get("event")), "binding": "not-bindable"}
    if bound := str(record.get("input_identity") or "").removeprefix("sha256:"):
        resource |= {"binding": "digest-bound", "argumentsDigest": bound}
    action = str(record.get("event"))
    time = _moment(record).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    request = {"action": action, "resourceId": resource["id"], "resourceKind": "tool"}
    request |= {"argumentsDigest": bound} if bound else {}
    digest = sha256(msgspec.json.encode(request, order="sorted")).hexdigest()
    policy = str(record.get("policy_digest") or "").removeprefix("sha256:") or sha256().hexdigest()
    user, own = str(record.get("user") or "none"), sha256(line.removesuffix(b"\n")).hexdigest()
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
        "hookline": {"line": own, **{one: record[one] for one in _OWN if one in record}},
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
