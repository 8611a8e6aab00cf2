"""Audit records in the words of others: OpenTelemetry's logs, OCSF for a SIEM, and Parquet for analysts.

What has no place of its own there is kept as it was written, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from hookline.errors import extra
from hookline.records.audit.ocsf import Record, ocsf, seconds, whole

_BATCH = 20_000
SEVERITY = {"deny": ("WARN", 13), "stop": ("WARN", 13), "ask": ("INFO2", 10), "defer": ("INFO2", 10)}
"""OpenTelemetry's words and numbers; everything else is INFO, 9."""
_COLUMNS = ("time", "machine", "seq", "run", "user", "cwd", "event", "tool", "decision", "blocked", "by", "ms", "hash")


def nanoseconds(record: Record) -> int:
    """When it was written; 0 if it does not say."""
    return int(seconds(record) * 1_000_000) * 1_000


def otlp(record: Record, machine: str = "") -> Record:
    """One line of OTLP's JSON file format, as a collector's `otlpjsonfile` receiver reads it."""
    decision = str(record.get("decision", ""))
    text, number = SEVERITY.get(decision, ("INFO", 9))
    attributes = {
        "event.name": f"hookline.{record.get('event', '')}",
        "hookline.decision": decision,
        "hookline.decided_by": record.get("by", ""),
        "hookline.blocked": bool(record.get("blocked")),
        "hookline.record.sequence": whole(record.get("seq")),
        "hookline.record.hash": record.get("hash", ""),
        "gen_ai.tool.name": record.get("tool", ""),
        "gen_ai.conversation.id": record.get("run", ""),
    }
    resource = {"service.name": "hookline", "host.id": machine, "enduser.id": record.get("user", "")}
    log = {
        "timeUnixNano": str(nanoseconds(record)),
        "severityText": text,
        "severityNumber": number,
        "body": {"stringValue": _text(record)},
        "attributes": _pairs(attributes),
    }
    scope = {"scope": {"name": "hookline.audit"}, "logRecords": [log]}
    return {"resourceLogs": [{"resource": {"attributes": _pairs(resource)}, "scopeLogs": [scope]}]}


def columns(record: Record, machine: str = "") -> Record:
    """A row for analysts: what is asked for most has a column, and the whole record is in `record`."""
    row = {name: record.get(name) for name in _COLUMNS}
    return {
        **{name: None if value is None else str(value) for name, value in row.items()},
        "time": nanoseconds(record) // 1_000,
        "machine": machine,
        "seq": whole(record.get("seq")),
        "blocked": bool(record.get("blocked")),
        "ms": float(record["ms"]) if isinstance(record.get("ms"), int | float) else None,
        "reasons": "\n".join(map(str, record.get("reasons") or ())),
        "record": _text(record),
    }


FORMATS: dict[str, Callable[[Record, str], Iterator[Record]]] = {
    "otel": lambda record, machine: iter((otlp(record, machine),)),
    "ocsf": ocsf,
}
"""The formats that are lines of JSON; a record may become several."""


def lines(records: Iterable[tuple[str, Record]], form: str) -> Iterator[bytes]:
    """Machine and record, as lines."""
    shape = FORMATS[form]
    for machine, record in records:
        yield from (msgspec.json.encode(made) + b"\n" for made in shape(record, machine))


def _text(record: Record) -> str:
    return msgspec.json.encode(record).decode()


def _pairs(values: Record) -> list[Record]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value not in ("", None)]


def _value(value: object) -> Record:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": str(value)}


# -- Parquet -----------------------------------------------------------------------------------------------------------


def write_parquet(path: Path, records: Iterable[tuple[str, Record]]) -> int:
    """Write a Parquet file with a row for each record, a batch at a time; how many."""
    with extra("Parquet", "parquet"):
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    schema = _schema(pa)
    rows, count = (columns(record, machine) for machine, record in records), 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        while batch := list(islice(rows, _BATCH)):
            file.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def _schema(arrow: Any) -> Any:
    text = arrow.string()
    kinds = {
        "time": arrow.timestamp("us", tz="UTC"), "machine": text, "seq": arrow.int64(), "run": text, "user": text,
        "cwd": text, "event": text, "tool": text, "decision": text, "blocked": arrow.bool_(), "by": text,
        "ms": arrow.float64(), "hash": text, "reasons": text, "record": text,
    }  # fmt: skip
    return arrow.schema(list(kinds.items()))
