"""Filters as SQL, and rows as values. Each query here stays quick on a million events, also where nothing matches."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from typing import Any

import msgspec

from hookline.records.console import schema
from hookline.records.console.index import LogIndex
from hookline.records.console.name_table import EVENT, TOOL
from hookline.records.console.records import VERDICTS
from hookline.records.console.store import EventRow, Filter

_CODES = {word: code for code, word in enumerate(VERDICTS)}

ROW = (
    "SELECT e.id, e.time, v.name AS event, e.verdict, t.name AS tool, s.name AS session, e.about, b.name AS by,"
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
        hooks=found["hooks"],
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
        if wanted.session or wanted.since % width or wanted.until % width:
            condition = Condition(self.db, wanted)
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
