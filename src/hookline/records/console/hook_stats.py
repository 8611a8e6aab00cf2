"""How hooks have done, from the index's sums."""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from hookline.records.console.name_table import HOOK
from hookline.records.console.records import percentile
from hookline.records.console.store import HookSeries, HookStats

_SPARK = 40


def hook_stats(db: sqlite3.Connection) -> list[HookStats]:
    """Every hook that ever was asked, the busiest first."""
    times: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for hook, slot, n in db.execute("SELECT hook, slot, sum(n) FROM hook_times GROUP BY 1, 2"):
        times[hook][slot] = n
    slowest: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for hook, ms, event in db.execute("SELECT hook, ms, event FROM slowest ORDER BY ms DESC"):
        slowest[hook].append((ms, event))
    sparks = _sparks(db)
    rows = db.execute(
        "SELECT r.hook, n.name, sum(runs), sum(denied), sum(failed), sum(skipped) FROM hook_runs r"
        " JOIN names n ON n.id = r.hook GROUP BY 1, 2 ORDER BY 3 DESC"
    )
    made = []
    for hook, name, runs, denied, failed, skipped in rows:
        p50, p95, p99 = (percentile(times[hook], share) for share in (0.5, 0.95, 0.99))
        made.append(HookStats(name, runs, denied, failed, skipped, p50, p95, p99, slowest[hook], sparks[hook]))
    return made


def _sparks(db: sqlite3.Connection) -> defaultdict[int, list[int]]:
    """Runs over time, for a small picture."""
    first, last = db.execute("SELECT min(bucket), max(bucket) FROM hook_runs").fetchone()
    sparks: defaultdict[int, list[int]] = defaultdict(lambda: [0] * _SPARK)
    if first is None:
        return sparks
    span = last - first + 1
    for hook, bucket, runs in db.execute("SELECT hook, bucket, runs FROM hook_runs"):
        sparks[hook][(bucket - first) * _SPARK // span] += runs
    return sparks


def hook_series(db: sqlite3.Connection, name: str, width: int) -> HookSeries | None:
    """One hook over time; a stretch without runs has no percentiles."""
    found = db.execute("SELECT id FROM names WHERE kind = ? AND name = ?", (HOOK, name)).fetchone()
    if found is None:
        return None
    times: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for bucket, slot, n in db.execute("SELECT bucket, slot, n FROM hook_times WHERE hook = ?", (found[0],)):
        times[bucket][slot] = n
    series = HookSeries(name, [], [], [], [], [], [], [])
    rows = db.execute("SELECT bucket, runs, denied, failed FROM hook_runs WHERE hook = ? ORDER BY bucket", (found[0],))
    for bucket, runs, denied, failed in rows:
        series.time.append(bucket * width)
        series.runs.append(runs)
        series.denied.append(denied)
        series.failed.append(failed)
        for share, column in ((0.5, series.p50), (0.95, series.p95), (0.99, series.p99)):
            column.append(percentile(times[bucket], share) if times[bucket] else None)
    return series
