"""One batch of lines on its way into the index: rows to insert, and sums that are added to the tables of sums."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hookline.records.console.records import FAILED, VERDICTS, EventRecord, decode, milliseconds, slot
from hookline.records.console.schema import Names

_MOST_SLOW = 10
_MOST_BUCKETS = 512
_DENY = VERDICTS.index("deny")
_ASKED = (VERDICTS.index("ask"), VERDICTS.index("defer"))

Session = list[Any]
"""first, last, events, denied, asked, failed, tools, title, cwd, user"""


class Batch:
    """Takes lines; `rows` are the events, the counters are sums over them."""

    def __init__(self, names: Names, next_id: int, width: int, before: int) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._cells: list[tuple[int, int, int, int, bool, int]] = []
        self._times: list[tuple[int, int, int]] = []
        self.hook_runs: dict[tuple[int, int], list[int]] = {}
        self.slow: dict[int, list[tuple[float, int]]] = {}
        self.sessions: dict[int, Session] = {}
        self.unreadable: int = 0
        self.lines: int = 0
        self.first = self.last = 0
        self._names = names
        self._next_id = next_id
        self._width = width
        self.before: int = before
        self._now = int(time.time() * 1000)

    def add(self, segment: int, offset: int, lines: Iterable[bytes]) -> None:
        """Take whole lines, without their newlines, the first of which begins at `offset`."""
        for line in lines:
            length = len(line)
            self.lines += 1
            record = decode(line) if length else None
            if record is None:
                self.unreadable += 1
            else:
                self._event(segment, offset, length, record)
            offset += length + 1

    @property
    def cube(self) -> Counter[tuple[int, int, int, int, bool, int]]:
        """Events by time, event, tool, verdict, failure and set of hooks."""
        return Counter(self._cells)

    @property
    def hook_times(self) -> Counter[tuple[int, int, int]]:
        """Hook runs by hook, time and how long they took."""
        return Counter(self._times)

    def _event(self, segment: int, offset: int, length: int, record: EventRecord) -> None:
        names = self._names
        number = self._next_id
        self._next_id = number + 1
        moment = self.before = milliseconds(record.time, self.before, self._now)
        hooks = record.hooks
        event, tool = names.event(record.event), names.tool(record.tool or "")
        hookset = names.hookset(tuple([run.hook for run in hooks])) if hooks else 0
        verdict, failed, about = record.verdict, bool(hooks) and record.failed, record.about
        run = names.session(record.run)
        self.rows.append((
            number, segment, offset, length, record.seq, moment, run, event, tool, verdict, failed, hookset,
            names.agent(record.agent or ""), names.agent(record.agent_type or ""), record.ms, record.duration_ms,
            names.by(record.by or ""), record.tool_use_id, about, record.reason,
        ))  # fmt: skip
        bucket = moment // self._width
        self._cells.append((bucket, event, tool, verdict, failed, hookset))
        if hooks:
            self._hooks(number, bucket, record)
        self._session(run, moment, verdict, failed=failed, record=record)

    def _hooks(self, number: int, bucket: int, record: EventRecord) -> None:
        for run in record.hooks:
            hook = self._names.hook(run.hook)
            sums = self.hook_runs.get((hook, bucket))
            if sums is None:
                sums = self.hook_runs[hook, bucket] = [0, 0, 0, 0]
            if run.status == "skipped":
                sums[3] += 1
                continue
            sums[0] += 1
            sums[1] += run.decision == "deny"
            sums[2] += run.status in FAILED
            self._times.append((hook, bucket, slot(run.ms)))
            slow = self.slow.get(hook)
            if slow is None:
                slow = self.slow[hook] = []
            if len(slow) < _MOST_SLOW or run.ms > slow[-1][0]:
                slow.append((run.ms, number))
                slow.sort(reverse=True)
                del slow[_MOST_SLOW:]

    def _session(self, run: int, moment: int, verdict: int, *, failed: bool, record: EventRecord) -> None:
        sums = self.sessions.get(run)
        if sums is None:
            sums = self.sessions[run] = [moment, moment, 0, 0, 0, 0, 0, "", record.cwd, record.user]
        sums[0] = min(sums[0], moment)
        sums[1] = max(sums[1], moment)
        sums[2] += 1
        sums[3] += verdict == _DENY
        sums[4] += verdict in _ASKED
        sums[5] += failed
        sums[6] += record.event == "PreToolUse"
        if record.prompt and not sums[7]:
            sums[7] = record.about


def add_batch(db: sqlite3.Connection, batch: Batch, width: int) -> int:
    """Add a batch to the tables; its sums cover `width` milliseconds each; how much they cover from now on."""
    many = db.executemany
    many(f"INSERT INTO events VALUES ({', '.join('?' * 20)})", batch.rows)
    many(
        "INSERT INTO cube VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
        [(*key, n) for key, n in batch.cube.items()],
    )
    many(
        "INSERT INTO hook_runs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " runs = runs + excluded.runs, denied = denied + excluded.denied,"
        " failed = failed + excluded.failed, skipped = skipped + excluded.skipped",
        [(*key, *sums) for key, sums in batch.hook_runs.items()],
    )
    many(
        "INSERT INTO hook_times VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
        [(*key, n) for key, n in batch.hook_times.items()],
    )
    _add_sessions(db, batch)
    _add_slow(db, batch)
    return width * _coarsen_buckets(db)


def _add_sessions(db: sqlite3.Connection, batch: Batch) -> None:
    db.executemany(
        "UPDATE sessions SET first = min(coalesce(first, ?1), ?1), last = max(coalesce(last, ?2), ?2),"
        " events = coalesce(events, 0) + ?3, denied = coalesce(denied, 0) + ?4, asked = coalesce(asked, 0) + ?5,"
        " failed = coalesce(failed, 0) + ?6, tools = coalesce(tools, 0) + ?7,"
        " title = coalesce(nullif(title, ''), ?8), cwd = coalesce(nullif(cwd, ''), ?9),"
        " user = coalesce(nullif(user, ''), ?10) WHERE id = ?11",
        [(*sums, run) for run, sums in batch.sessions.items()],
    )


def _add_slow(db: sqlite3.Connection, batch: Batch) -> None:
    for hook, slow in batch.slow.items():
        db.executemany("INSERT INTO slowest VALUES (?, ?, ?)", [(hook, *one) for one in slow])
        db.execute(
            "DELETE FROM slowest WHERE hook = ?1 AND (ms, event) NOT IN"
            " (SELECT ms, event FROM slowest WHERE hook = ?1 ORDER BY ms DESC LIMIT ?2)",
            (hook, _MOST_SLOW),
        )


def _coarsen_buckets(db: sqlite3.Connection) -> int:
    """Keep the sums over time small: as the logs span more time, each sum covers so many times as much of it."""
    first, last = db.execute("SELECT min(bucket), max(bucket) FROM cube").fetchone()
    if first is None or last - first < _MOST_BUCKETS:
        return 1
    factor = 2
    while (last - first) // factor >= _MOST_BUCKETS // 2:
        factor *= 2
    for table, keys, sums in (
        ("cube", ("event", "tool", "verdict", "failed", "hookset"), ("n",)),
        ("hook_times", ("hook", "slot"), ("n",)),
        ("hook_runs", ("hook",), ("runs", "denied", "failed", "skipped")),
    ):
        _rebucket(db, table, keys, sums, factor)
    return factor


def _rebucket(db: sqlite3.Connection, table: str, keys: tuple[str, ...], sums: tuple[str, ...], factor: int) -> None:
    columns = ", ".join([*keys, "bucket", *sums])
    summed = ", ".join([*keys, f"bucket / {factor} AS bucket", *(f"sum({name}) AS {name}" for name in sums)])
    groups = ", ".join([f"bucket / {factor}", *keys])
    db.execute(f"CREATE TEMP TABLE wider AS SELECT {summed} FROM {table} GROUP BY {groups}")
    db.execute(f"DELETE FROM {table}")
    db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM wider")
    db.execute("DROP TABLE wider")
