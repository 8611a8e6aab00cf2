"""Audit records for other systems: nothing is lost on the way, and their own readers read it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline.records.audit import AuditFile
from hookline.records.audit.export import columns, ocsf, otlp
from hookline.records.audit.log import read
from tests import forked

DENIED: dict[str, Any] = {
    "time": "2026-03-02T09:00:00.250+00:00", "run": "s1", "user": "ada", "cwd": "/proj", "event": "PreToolUse",
    "tool": "Bash", "decision": "deny", "blocked": True, "by": "guard", "reasons": ["no", "never"], "ms": 1.5,
    "input": {"command": "rm -rf /"},
}  # fmt: skip
MOMENT = 1_772_442_000_250


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that was rotated once."""
    path = tmp_path / "audit.jsonl"
    AuditFile(path).append([DENIED] * 3)
    AuditFile(path, max_bytes=100).append([{**DENIED, "decision": "pass", "blocked": False}])
    AuditFile(path).append([{"event": "Stop", "time": "nonsense"}])
    return path


def hookline(*words: object, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    ran = forked.run([str(word) for word in words], cwd=Path.cwd(), env=os.environ)
    assert ran.returncode == code, ran.stderr
    return ran


def test_every_record_is_exported(log: Path) -> None:
    """Through rotated files, oldest first; a denial is a finding of OCSF besides."""
    for form, lines in (("otel", 5), ("ocsf", 8)):
        made = [json.loads(line) for line in hookline("audit", "export", log, "--format", form).stdout.splitlines()]

        assert len(made) == lines, form


def test_a_denial_as_a_log_record_of_opentelemetry() -> None:
    """In the JSON encoding of OTLP, that a collector reads from a file."""
    made = otlp({**DENIED, "seq": 7, "hash": "ab"}, "m1")
    [resource] = made["resourceLogs"]
    [record] = resource["scopeLogs"][0]["logRecords"]

    assert {"key": "host.id", "value": {"stringValue": "m1"}} in resource["resource"]["attributes"]
    assert record["timeUnixNano"] == f"{MOMENT}000000"
    assert (record["severityText"], record["severityNumber"]) == ("WARN", 13)
    assert {"key": "hookline.decision", "value": {"stringValue": "deny"}} in record["attributes"]
    assert {"key": "hookline.record.sequence", "value": {"intValue": "7"}} in record["attributes"]
    assert json.loads(record["body"]["stringValue"]) == {**DENIED, "seq": 7, "hash": "ab"}


def test_parquet_is_read_by_its_own_reader(log: Path, tmp_path: Path) -> None:
    """Every record is a row, and the whole of it is there."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs `hookline[parquet]`, as `make test-all` has")

    out = tmp_path / "out.parquet"
    said = hookline("audit", "export", log, "--format", "parquet", "-o", out)
    rows = parquet.read_table(out).to_pylist()

    assert said.stderr.decode() == f"5 records in {out}\n"
    assert [row["decision"] for row in rows] == ["deny", "deny", "deny", "pass", None]
    assert rows[0]["time"].isoformat() == "2026-03-02T09:00:00.250000+00:00"
    files = [*AuditFile(log).rotated(), log]
    assert [json.loads(row["record"]) for row in rows] == [dict(one) for file in files for one in read(file)]


@pytest.mark.parametrize("record", [{}, {"seq": "x", "time": 3, "reasons": None, "ms": "a", "user": {"a": 1}}])
def test_odd_records_are_exported_all_the_same(record: dict[str, Any]) -> None:
    """A log may hold anything that is JSON."""
    for shape in (otlp, columns):
        assert json.dumps(shape(record, ""))
    assert json.dumps(list(ocsf(record, "")))


def test_what_cannot_be_done_is_said(log: Path, tmp_path: Path) -> None:
    """A file is needed, or missing, or cannot be written."""
    assert b"name one with `--output FILE`" in hookline("audit", "export", log, "--format", "parquet", code=1).stderr
    missing = hookline("audit", "export", tmp_path / "no.jsonl", "--format", "ocsf", code=2)
    assert b"no such file or folder; name an audit log" in missing.stderr
    nowhere = hookline("audit", "export", log, "--format", "ocsf", "-o", tmp_path / "no" / "x", code=1)
    assert b"No such file or directory; name another file" in nowhere.stderr


def test_a_fleets_records_name_their_machine(log: Path, tmp_path: Path) -> None:
    """All mirrors in one stream."""
    from hookline.fleet.ledger import Ledger

    ledger = Ledger(tmp_path / "hub" / "audit")
    for machine in ("m1", "m2"):
        ledger.mirror(machine).take(b"".join(file.read_bytes() for file in (*AuditFile(log).rotated(), log)))
    made = hookline("fleet", "export", "--folder", tmp_path / "hub", "--format", "ocsf").stdout.splitlines()

    steps = [step for line in made if (step := json.loads(line))["class_uid"] != 2004]
    assert [step["device"]["uid"] for step in steps] == ["m1"] * 5 + ["m2"] * 5
