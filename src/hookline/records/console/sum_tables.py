"""The index's tables of sums: events by time and kind, hooks' runs and times, sessions, the slowest runs."""

from __future__ import annotations

import sqlite3

from hookline.records.console.batch import MOST_SLOW, Batch

_MOST_BUCKETS = 512


class SumTables:
    """Adds a batch of events to the tables."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, batch: Batch, width: int) -> int:
        """Add a batch whose sums cover `width` milliseconds each; how much they cover from now on."""
        many = self._db.executemany
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
        self._add_sessions(batch)
        self._add_slow(batch)
        return width * self._coarsen_buckets()

    def _add_sessions(self, batch: Batch) -> None:
        self._db.executemany(
            "UPDATE sessions SET first = min(coalesce(first, ?1), ?1), last = max(coalesce(last, ?2), ?2),"
            " events = coalesce(events, 0) + ?3, denied = coalesce(denied, 0) + ?4, asked = coalesce(asked, 0) + ?5,"
            " failed = coalesce(failed, 0) + ?6, tools = coalesce(tools, 0) + ?7,"
            " title = coalesce(nullif(title, ''), ?8), cwd = coalesce(nullif(cwd, ''), ?9),"
            " user = coalesce(nullif(user, ''), ?10) WHERE id = ?11",
            [(*sums, run) for run, sums in batch.sessions.items()],
        )

    def _add_slow(self, batch: Batch) -> None:
        for hook, slow in batch.slow.items():
            self._db.executemany("INSERT INTO slowest VALUES (?, ?, ?)", [(hook, *one) for one in slow])
            self._db.execute(
                "DELETE FROM slowest WHERE hook = ?1 AND (ms, event) NOT IN"
                " (SELECT ms, event FROM slowest WHERE hook = ?1 ORDER BY ms DESC LIMIT ?2)",
                (hook, MOST_SLOW),
            )

    def _coarsen_buckets(self) -> int:
        """Keep the sums over time small: as the logs span more time, each sum covers so many times as much of it."""
        first, last = self._db.execute("SELECT min(bucket), max(bucket) FROM cube").fetchone()
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
            self._rebucket(table, keys, sums, factor)
        return factor

    def _rebucket(self, table: str, keys: tuple[str, ...], sums: tuple[str, ...], factor: int) -> None:
        columns = ", ".join([*keys, "bucket", *sums])
        summed = ", ".join([*keys, f"bucket / {factor} AS bucket", *(f"sum({name}) AS {name}" for name in sums)])
        groups = ", ".join([f"bucket / {factor}", *keys])
        self._db.execute(f"CREATE TEMP TABLE wider AS SELECT {summed} FROM {table} GROUP BY {groups}")
        self._db.execute(f"DELETE FROM {table}")
        self._db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM wider")
        self._db.execute("DROP TABLE wider")
