"""Filters as SQL, and rows as values. Each query here stays quick on a million events, also where nothing matches."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from hookline.records.console import schema
from hookline.records.console.index import LogIndex
from hookline.records.console.records import VERDICTS, percentile
from hookline.records.console.schema import EVENT, HOOK, TOOL
from hookline.records.console.store import EventRow, Filter, HookSeries, HookStats

_SPARK = 40
_MOST_SEARCHED = 250_000
"""Events, the newest, in which a text is counted: so many are looked through within a second."""
_CODES = {word: code for code, word in enumerate(VERDICTS)}

ROW = (
    "SELECT e.id, e.time, v.name AS event, e.verdict, t.name AS tool, s.name AS session, s.user, e.about, b.name AS by,"
    " e.reason, e.ms, e.duration, e.failed, a.name AS agent, k.name AS agent_type, e.call, e.hookset,"
    " (SELECT count(*) FROM hooksets h WHERE h.hookset = e.hookset) AS hooks"
    " FROM events e LEFT JOIN names v ON v.id = e.event LEFT JOIN names t ON t.id = e.tool"
    " LEFT JOIN names b ON b.id = e.by LEFT JOIN names a ON a.id = e.agent LEFT JOIN names k ON k.id = e.agent_type"
    " LEFT JOIN sessions s ON s.id = e.run"
)


def row(found: sqlite3.Row) -> EventRow:
    """One event of a list."""
    return EventRow(
        id=found["id"], time=found["time"], event=found["event"] or "", verdict=VERDICTS[found["verdict"]],
        tool=found["tool"] or "", session=found["session"] or "", about=found["about"] or "", by=found["by"] or "",
        reason=found["reason"] or "", ms=found["ms"] or 0.0, duration=found["duration"], failed=bool(found["failed"]),
        agent=found["agent"] or "", agent_type=found["agent_type"] or "", call=found["call"] or "",
        hooks=found["hooks"], user=found["user"] or "",
    )  # fmt: skip


class Condition:
    """A filter as the conditions of a WHERE clause; `impossible` if it names what no record has."""

    def __init__(self, db: sqlite3.Connection, wanted: Filter) -> None:
        self.parts: list[str] = []
        self.values: list[Any] = []
        self._db = db
        self._cells(wanted)
        self._rest(wanted)

    def _cells(self, wanted: Filter) -> None:
        """What the cube knows too."""
        codes = [_CODES.get(word, -1) for word in wanted.verdict]
        if codes:
            self.add(f"verdict IN ({', '.join('?' * len(codes))})", *codes)
        if wanted.event:
            self.add("event = ?", self._name(EVENT, wanted.event))
        if wanted.tool:
            self.add("tool = ?", self._name(TOOL, wanted.tool))
        if wanted.hook:
            found = self._hooksets(wanted.hook)
            self.add(f"hookset IN ({', '.join(map(str, found)) or '-1'})")
        if wanted.failed:
            self.add("failed = 1")
        if wanted.unseen:
            self.add("hookset = 0")

    def _rest(self, wanted: Filter) -> None:
        if wanted.session:
            found = self._db.execute("SELECT id FROM sessions WHERE name = ?", (wanted.session,)).fetchone()
            self.add("run = ?", found[0] if found else -1)
        if wanted.since:
            self.add("time >= ?", wanted.since)
        if wanted.until:
            self.add("time < ?", wanted.until)
        if wanted.text:
            self.add("(about LIKE ? ESCAPE '\\' OR reason LIKE ? ESCAPE '\\')", *[like(wanted.text)] * 2)

    def add(self, part: str, *values: Any) -> None:
        """One more condition."""
        self.parts.append(part)
        self.values.extend(values)

    def _name(self, kind: int, name: str) -> int:
        found = self._db.execute("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name)).fetchone()
        return found[0] if found else -1

    def _hooksets(self, hook: str) -> list[int]:
        rows = self._db.execute(
            "SELECT h.hookset FROM hooksets h JOIN names n ON n.id = h.hook WHERE n.name = ? AND n.kind = 3", (hook,)
        )
        return [found[0] for found in rows]

    def where(self, *more: str) -> str:
        """The clause, with further conditions, which take their values after these."""
        parts = [*self.parts, *more]
        return f" WHERE {' AND '.join(parts)}" if parts else ""


def like(text: str) -> str:
    """A pattern for LIKE that finds a text anywhere."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def position(cursor: str) -> tuple[int, int] | None:
    """A cursor, `TIME.ID`, as numbers; `None` at the beginning or for what is not a cursor."""
    first, _, second = cursor.partition(".")
    try:
        return int(first), int(second)
    except ValueError:
        return None


class IndexReader:
    """The index as it is now, asked from any thread: a connection for each."""

    def __init__(self, index: LogIndex) -> None:
        self._index = index
        self._local = threading.local()

    @property
    def db(self) -> sqlite3.Connection:
        """The connection of the calling thread."""
        generation = self._index.generation
        if getattr(self._local, "generation", None) != generation:
            self._local.db = schema.reader(self._index.path)
            self._local.generation = generation
        db: sqlite3.Connection = self._local.db
        return db

    def rows(self, clause: str, values: Iterable[Any]) -> list[EventRow]:
        """Events, as a list shows them."""
        return [row(found) for found in self.db.execute(f"{ROW} {clause}", list(values))]

    def newest(self, clause: str, values: Iterable[Any]) -> list[EventRow]:
        """The events that were read last of those that match; the last of the values is how many at most."""
        ids = f"SELECT id FROM events NOT INDEXED{clause} ORDER BY id DESC LIMIT ?"
        return self.rows(f"WHERE e.id IN ({ids}) ORDER BY e.id DESC", values)

    def span(self) -> tuple[int, int]:
        """The times of the first event and the last."""
        first, last = self.db.execute(
            "SELECT (SELECT min(time) FROM events), (SELECT max(time) FROM events)"
        ).fetchone()
        return first or 0, last or 0

    def names(self, numbers: set[int]) -> dict[int, str]:
        """The names that these numbers stand for."""
        wanted = ", ".join(map(str, numbers))
        return dict(self.db.execute(f"SELECT id, name FROM names WHERE id IN ({wanted})").fetchall())

    def hooksets(self, numbers: set[int]) -> dict[int, list[str]]:
        """The hooks of these sets."""
        wanted = ", ".join(map(str, numbers))
        found: dict[int, list[str]] = {}
        for hookset, hook in self.db.execute(
            f"SELECT h.hookset, n.name FROM hooksets h JOIN names n ON n.id = h.hook WHERE h.hookset IN ({wanted})"
        ):
            found.setdefault(hookset, []).append(hook)
        return found

    @property
    def width(self) -> int:
        """How many milliseconds each sum over time covers."""
        found = self.db.execute("SELECT value FROM meta WHERE key = 'width'").fetchone()
        return found[0] if found else 50

    def cells(self, wanted: Filter, columns: str) -> list[sqlite3.Row]:
        """Counts by these columns: from the sums where they are fine enough, else from the events."""
        width = self.width
        if wanted.session or wanted.text or wanted.since % width or wanted.until % width:
            condition = Condition(self.db, wanted)
            if wanted.text:
                newest = self.db.execute("SELECT max(id) FROM events").fetchone()[0] or 0
                condition.add("id > ?", newest - _MOST_SEARCHED)
            source, count = f"(SELECT *, time / {width} AS bucket FROM events{condition.where()})", "count(*)"
        else:
            condition = Condition(self.db, msgspec.structs.replace(wanted, since=0, until=0))
            if wanted.since:
                condition.add("bucket >= ?", wanted.since // width)
            if wanted.until:
                condition.add("bucket < ?", wanted.until // width)
            source, count = f"(SELECT * FROM cube{condition.where()})", "sum(n)"
        query = f"SELECT {columns}, {count} AS n FROM {source} GROUP BY {columns}"
        return self.db.execute(query, condition.values).fetchall()


# -- how hooks have done, from the sums ------------------------------------------------------------------------------


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
