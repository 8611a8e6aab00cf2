"""Filters as SQL, and rows as values. Each query here stays quick on a million events, also where nothing matches."""

from __future__ import annotations

import sqlite3
from typing import Any

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
