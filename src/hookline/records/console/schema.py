"""The index's tables, how a database is opened (for a bulk load, for writing, for reading), and names as numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from hookline.records.console.records import MOST_NAME

VERSION = 1
EVENT, TOOL, HOOK, AGENT, BY, HOOKSET = range(1, 7)
_MOST_REMEMBERED = 20_000

TABLES: str = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")
"""The log stays the truth: an event's row says where its line lies, and what a list of events has to show."""

INDICES: str = Path(__file__).with_name("indices.sql").read_text(encoding="utf-8")
"""Made after a bulk load. The first answers every filter without touching the table, also where nothing matches."""


def create(path: Path) -> sqlite3.Connection:
    """An empty index, open for a bulk load: fast, and worthless if it is interrupted."""
    remove(path)
    path.touch(0o600)
    db = _tuned(sqlite3.connect(path, isolation_level=None, check_same_thread=False))
    db.execute("PRAGMA journal_mode=OFF")
    db.executescript(TABLES)
    return db


def remove(path: Path) -> None:
    """Delete an index, and what SQLite keeps beside it."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def reopen(path: Path) -> sqlite3.Connection | None:
    """An index that was made whole before, open for writing; `None` if there is none that can be used."""
    if not path.is_file():
        return None
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        found = dict(db.execute("SELECT key, value FROM meta"))
        if found.get("version") == VERSION and found.get("complete"):
            shared(_tuned(db))
            return db
    except sqlite3.DatabaseError:  # it is damaged, or not an index at all
        pass
    db.close()
    return None


def shared(db: sqlite3.Connection) -> None:
    """Let others read while this one writes."""
    db.execute("PRAGMA journal_mode=WAL")


def reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA cache_size=-32768")
    db.execute("PRAGMA mmap_size=1073741824")
    return db


def _tuned(db: sqlite3.Connection) -> sqlite3.Connection:
    """Fast rather than safe: what is lost is made again from the logs."""
    db.execute("PRAGMA synchronous=OFF")
    db.execute("PRAGMA cache_size=-65536")
    db.execute("PRAGMA temp_store=MEMORY")
    return db


class Names:
    """Numbers for names; asked once per event and kind, so what was asked lately is remembered."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.event: Callable[[str], int] = self._kind(EVENT)
        self.tool: Callable[[str], int] = self._kind(TOOL)
        self.hook: Callable[[str], int] = self._kind(HOOK)
        self.agent: Callable[[str], int] = self._kind(AGENT)
        self.by: Callable[[str], int] = self._kind(BY)
        self._hooksets: dict[tuple[str, ...], int] = {}
        self._sessions: dict[str, int] = {}

    def _kind(self, kind: int) -> Callable[[str], int]:
        known: dict[str, int] = {"": 0}

        def number(name: str) -> int:
            found = known.get(name)
            if found is not None:
                return found
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
                known[""] = 0
            made = known[name] = self._stored(kind, name[:MOST_NAME])
            return made

        return number

    def _stored(self, kind: int, name: str) -> int:
        found = self._db.execute("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name)).fetchone()
        if found is None:
            made = self._db.execute("INSERT INTO names (kind, name) VALUES (?, ?) RETURNING id", (kind, name))
            found = made.fetchone()
        return int(found[0])

    def hookset(self, hooks: tuple[str, ...]) -> int:
        """The number of a set of hooks that answered together; 0 is the empty one."""
        found = self._hooksets.get(hooks)
        if found is None:
            if len(self._hooksets) >= _MOST_REMEMBERED:
                self._hooksets.clear()
            numbers = sorted({self.hook(hook) for hook in hooks})
            found = self._hooksets[hooks] = self._stored(HOOKSET, " ".join(map(str, numbers)))
            self._db.executemany("INSERT OR IGNORE INTO hooksets VALUES (?, ?)", [(found, hook) for hook in numbers])
        return found

    def session(self, name: str) -> int:
        """The number of a session."""
        found = self._sessions.get(name)
        if found is None:
            if len(self._sessions) >= _MOST_REMEMBERED:
                self._sessions.clear()
            row = self._db.execute("SELECT id FROM sessions WHERE name = ?", (name[:MOST_NAME],)).fetchone()
            if row is None:
                made = self._db.execute("INSERT INTO sessions (name) VALUES (?) RETURNING id", (name[:MOST_NAME],))
                row = made.fetchone()
            found = self._sessions[name] = int(row[0])
        return found
