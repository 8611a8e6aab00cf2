"""The index's tables, how a database is opened (for a bulk load, for writing, for reading), and names as numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from hookline.records.console.records import MOST_NAME

VERSION = 1
EVENT, TOOL, HOOK, AGENT, BY, HOOKSET = range(1, 7)
_MOST_REMEMBERED = 20_000

TABLES: str = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")
"""The log stays the truth: an event's row says where its line lies, and what a list of events has to show."""

SHARED = "PRAGMA journal_mode=WAL"
"""Lets others read while one writes."""

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
            _tuned(db).execute(SHARED)
            return db
    except sqlite3.DatabaseError:  # it is damaged, or not an index at all
        pass
    db.close()
    return None


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
        remembered = lru_cache(_MOST_REMEMBERED)
        self.event: Callable[[str], int] = remembered(partial(self._stored, EVENT))
        self.tool: Callable[[str], int] = remembered(partial(self._stored, TOOL))
        self.hook: Callable[[str], int] = remembered(partial(self._stored, HOOK))
        self.agent: Callable[[str], int] = remembered(partial(self._stored, AGENT))
        self.by: Callable[[str], int] = remembered(partial(self._stored, BY))
        self.hookset: Callable[[tuple[str, ...]], int] = remembered(self._hookset)
        self.session: Callable[[str], int] = remembered(self._session)

    def _stored(self, kind: int, name: str) -> int:
        return self._number("names", ("kind", "name"), (kind, name[:MOST_NAME])) if name else 0

    def _hookset(self, hooks: tuple[str, ...]) -> int:
        """The number of a set of hooks that answered together; 0 is the empty one."""
        numbers = sorted({self.hook(hook) for hook in hooks})
        found = self._number("names", ("kind", "name"), (HOOKSET, " ".join(map(str, numbers))))
        self._db.executemany("INSERT OR IGNORE INTO hooksets VALUES (?, ?)", [(found, hook) for hook in numbers])
        return found

    def _session(self, name: str) -> int:
        return self._number("sessions", ("name",), (name[:MOST_NAME],))

    def _number(self, table: str, columns: tuple[str, ...], values: tuple[int | str, ...]) -> int:
        """The number of a row with these values, which is added if it is not there."""
        wanted = " AND ".join(f"{column} = ?" for column in columns)
        found = self._db.execute(f"SELECT id FROM {table} WHERE {wanted}", values).fetchone()
        if found is None:
            places = ", ".join("?" * len(values))
            added = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) RETURNING id"
            found = self._db.execute(added, values).fetchone()
        return int(found[0])
