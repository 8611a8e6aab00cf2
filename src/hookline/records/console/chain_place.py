"""Where a line stands in its log's chain, for the console."""

from __future__ import annotations

import msgspec

from hookline.records.audit.chain import follow, link_before, link_of
from hookline.records.audit.checkpoint import read_head
from hookline.records.audit.log import AuditFile, Break


class ChainPlace(msgspec.Struct, frozen=True):
    """Where a line stands in its log's chain, and whether it fits there."""

    seq: int
    hash: str
    prev: str
    holds: bool | None
    problem: str = ""


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
