"""Which files hold the records: audit logs, the logs in folders, and the older files that a log was rotated into.

The one module here that knows how the audit log is laid out on disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hookline.errors import HooklineError
from hookline.records.audit.chain import follow, link_before, link_of
from hookline.records.audit.checkpoint import read_head
from hookline.records.audit.log import AuditFile, Break

MOST_LINE = 16 << 20
_LOG = re.compile(r".*\.jsonl(?:\.[0-9]+)?")
_ROTATED = re.compile(r"(.*\.jsonl)\.[0-9]+")


class Segment(msgspec.Struct, frozen=True):
    """One file of a log; its identity outlasts the renaming of a rotation."""

    log: str
    path: str
    identity: str
    size: int


class ChainPlace(msgspec.Struct, frozen=True):
    """Where a line stands in its log's chain, and whether it fits there."""

    seq: int
    hash: str
    prev: str
    holds: bool | None
    problem: str = ""


def logs_in(paths: Iterable[str | Path]) -> list[Path]:
    """The logs that are meant: files as they are, and every `.jsonl` log in a folder, once each."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            found |= dict.fromkeys(sorted(_logs_below(path.resolve())))
        elif path.exists() or AuditFile(path).head_path.exists():
            found[path.resolve()] = None
        else:
            raise HooklineError(f"{path}: no such file or folder; name an audit log, or a folder that holds some")
    return list(found)


def _logs_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.jsonl*"):
        if _LOG.fullmatch(path.name) and path.is_file():
            rotated = _ROTATED.fullmatch(path.name)
            yield path.with_name(rotated[1]) if rotated else path


def segments(log: Path) -> list[Segment]:
    """The files of one log, oldest first; a file that goes away meanwhile is left out."""
    try:
        paths = [*AuditFile(log).rotated(), log]
    except OSError:
        return []
    made = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        made.append(Segment(str(log), str(path), f"{status.st_dev}:{status.st_ino}", status.st_size))
    return made


def verify(log: str, key: bytes | None) -> list[Break]:
    """Every place where the log's chain does not hold."""
    return AuditFile(log, key=key).verify()


def chain_place(log: str, line: bytes, before: bytes | None, key: bytes | None) -> ChainPlace | None:
    """A line's place in the chain, checked against the line before it; `None` if it is not a line of a chain."""
    here, start = link_of(line), link_before(line)
    if here is None or start is None:
        return None
    if key is None and is_keyed(log):
        return ChainPlace(here.seq, here.hash, start.hash, None, "written with a key; start with `--key-file` to check")
    last = link_of(before) if before else None
    [(_, problem)] = follow([line], start if last is None else last, key)
    return ChainPlace(here.seq, here.hash, start.hash, problem is None, problem or "")


def is_keyed(log: str) -> bool:
    """Whether the log's hashes can be checked only with its key."""
    head = read_head(AuditFile(log).head_path)
    return head is not None and head.keyed


def read_at(path: str, offset: int, length: int) -> bytes:
    """Bytes of a file, fewer if it ends before."""
    with open(path, "rb") as file:  # noqa: PTH123 - a path as the index holds it
        return os.pread(file.fileno(), length, offset)
