"""Writing audit logs in other formats, for `hookline audit export` and `hookline fleet export`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hookline.cli.style import counted
from hookline.core.wire.json_text import read_object
from hookline.display import one_line
from hookline.errors import HooklineError
from hookline.records.audit.export import FORMATS, lines, write_parquet
from hookline.records.audit.reader import LogReader

log: logging.Logger = logging.getLogger("hookline.audit")

ALL_FORMATS = (*FORMATS, "parquet")
Log = tuple[str, Path]
"""A machine, empty if there is only one, and its log."""


def export(logs: Iterable[Log], args: argparse.Namespace, wanted: Callable[[Any], bool] = bool) -> int:
    """Write every record of the logs that is wanted; the exit code."""
    records = (row for row in _records(logs) if wanted(row[1]))
    if args.format == "parquet":
        if args.output is None:
            raise HooklineError("--format parquet: a file is needed; name one with `--output FILE`")
        with _writing(args.output):
            count = write_parquet(args.output, records)
        print(f"{counted(count, 'record')} in {one_line(str(args.output))}", file=sys.stderr)
    elif args.output is None:
        sys.stdout.buffer.writelines(lines(records, args.format))
        sys.stdout.flush()
    else:
        with _writing(args.output), args.output.open("wb") as file:
            file.writelines(lines(records, args.format))
    return 0


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise HooklineError(f"{path}: {problem.strerror}; name another file, or make room there") from None


def _records(logs: Iterable[Log]) -> Iterator[tuple[str, dict[str, Any]]]:
    for machine, path in logs:
        reader = LogReader(path)
        if not reader.segments():
            raise HooklineError(f"{path}: no such file; name an audit log")
        for batch in reader.batches():
            for line in batch.lines:
                record = read_object(line)
                if record is None:
                    log.warning("%s: a line is not a record; run `hookline audit verify`", path)
                else:
                    yield machine, record
