"""Records as a Parquet file, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from hookline.errors import extra
from hookline.records.audit.export import Record, columns

BATCH = 20_000


def write_parquet(path: Path, records: Iterable[tuple[str, Record]]) -> int:
    """Write a file with a row for each record; how many."""
    with extra("Parquet", "parquet"):
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    schema = _schema(pa)
    rows, count = (columns(record, machine) for machine, record in records), 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        while batch := list(islice(rows, BATCH)):
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
