"""Names as numbers: events, tools, hooks, agents, sets of hooks and sessions, each stored once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from hookline.records.console.records import MOST_NAME

EVENT, TOOL, HOOK, AGENT, BY, HOOKSET = range(1, 7)
_MOST_REMEMBERED = 20_000


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
