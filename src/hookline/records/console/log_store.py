"""What the console asks: the index over audit logs, and the logs themselves."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.files import read_at
from hookline.errors import HooklineError
from hookline.events import CATALOG
from hookline.records.audit.anchor import read_head
from hookline.records.audit.chain import follow, link_before, link_of
from hookline.records.audit.log_file import AuditFile, last_line
from hookline.records.audit.push import push_states
from hookline.records.audit.reader import LogReader
from hookline.records.console.index import LogIndex
from hookline.records.console.queries import Condition, IndexReader, hook_series, hook_stats, like, position
from hookline.records.console.records import MOST_NAME, VERDICTS
from hookline.records.console.store import (
    ConfiguredHook,
    Coverage,
    EventRow,
    Facets,
    Filter,
    Gap,
    Health,
    HookSeries,
    HookStats,
    LogHealth,
    Page,
    SessionEvents,
    Sessions,
    SessionSummary,
    Status,
    Timeline,
    ToolCoverage,
)

_SEARCH_ROWS = 25_000
_SEARCH_SECONDS = 0.2
_MOST_GAPS = 200
_MOST_NAMES = 200
_MOST_BREAKS = 100
_UNREAD: dict[str, Any] = {"record": {}, "line": "", "chain": None}
_GATES = tuple(row.name for row in CATALOG.values() if row.gate and row.audited)


class ChainPlace(msgspec.Struct, frozen=True):
    """Where a line stands in its log's chain, and whether it fits there."""

    seq: int
    hash: str
    prev: str
    holds: bool | None
    problem: str = ""


class LogStore:
    """Asks the index, and the logs themselves for what only they have. May be asked from any thread."""

    def __init__(self, index: LogIndex, *, key: bytes | None = None, configured: Iterable[ConfiguredHook] = ()) -> None:
        self._index = index
        self._key = key
        self._configured = tuple(configured)
        self._reader = IndexReader(index)
        self._checks: dict[str, list[str] | None] = {}
        self._checking: set[str] = set()

    def status(self) -> Status:
        """How far it is."""
        index = self._index
        span = self._reader.span() if index.complete else (0, 0)
        return Status(index.complete, *index.progress, index.last_id, index.last_id, *span)

    # -- events ----------------------------------------------------------------------------------------------------

    def page(self, wanted: Filter, cursor: str, limit: int) -> Page:
        """Events, newest first."""
        if wanted.text:
            return self._search(wanted, cursor, limit)
        condition = Condition(self._reader.db, wanted)
        before = position(cursor)
        more = ["(time, id) < (?, ?)"] if before else []
        ids = f"SELECT id FROM events{condition.where(*more)} ORDER BY time DESC, id DESC LIMIT ?"
        values = [*condition.values, *(before or ()), limit]
        rows = self._reader.rows(f"WHERE e.id IN ({ids}) ORDER BY e.time DESC, e.id DESC", values)
        return Page(rows, f"{rows[-1].time}.{rows[-1].id}" if len(rows) == limit else "")

    def _search(self, wanted: Filter, cursor: str, limit: int) -> Page:
        """Text is searched for back from the newest event, for a moment; the cursor says how far that went."""
        condition = Condition(self._reader.db, wanted)
        start = position(cursor)
        top = start[1] if start else self._index.last_id + 1
        rows: list[EventRow] = []
        deadline = time.monotonic() + _SEARCH_SECONDS
        while top > 1 and len(rows) < limit and (not rows or time.monotonic() < deadline):
            bottom = max(top - _SEARCH_ROWS, 1)
            values = [*condition.values, bottom, top, limit - len(rows)]
            rows += self._reader.newest(condition.where("id >= ?", "id < ?"), values)
            top = rows[-1].id if len(rows) >= limit else bottom
            if time.monotonic() >= deadline:
                break
        return Page(rows, f"0.{top}" if top > 1 else "")

    def after(self, last_id: int, wanted: Filter, limit: int) -> tuple[list[EventRow], int]:
        """What came in after an event, newest first, and how many that were in all."""
        condition = Condition(self._reader.db, wanted)
        clause, values = condition.where("id > ?"), [*condition.values, last_id]
        total = self._reader.db.execute(f"SELECT count(*) FROM events NOT INDEXED{clause}", values).fetchone()[0]
        return self._reader.newest(clause, [*values, limit]), total

    def facets(self, wanted: Filter) -> Facets:
        """Counts for the filters."""
        cells = self._reader.cells(wanted, "event, tool, verdict, failed, hookset")
        names = self._reader.names({cell[place] for cell in cells for place in (0, 1)})
        sums: dict[str, Counter[str]] = {kind: Counter() for kind in ("verdict", "event", "tool", "hook")}
        hooksets = self._reader.hooksets({cell["hookset"] for cell in cells})
        for cell in cells:
            sums["verdict"][VERDICTS[cell["verdict"]]] += cell["n"]
            sums["event"][names.get(cell["event"], "")] += cell["n"]
            sums["tool"][names.get(cell["tool"], "")] += cell["n"]
            for hook in hooksets.get(cell["hookset"], ()):
                sums["hook"][hook] += cell["n"]
        return Facets(
            sum(cell["n"] for cell in cells), **{kind: _most(counts) for kind, counts in sums.items()},
            failed=sum(cell["n"] for cell in cells if cell["failed"]),
        )  # fmt: skip

    def timeline(self, wanted: Filter) -> Timeline:
        """Counts over time."""
        width = self._reader.width
        buckets: dict[int, dict[str, int]] = {}
        for found in self._reader.cells(wanted, "bucket, verdict"):
            buckets.setdefault(found["bucket"] * width, {})[VERDICTS[found["verdict"]]] = found["n"]
        return Timeline(width, sorted(buckets.items()))

    def event(self, number: int) -> dict[str, Any] | None:
        """Everything about one event: its row, its record, its line and its place in the chain."""
        rows = self._reader.rows("WHERE e.id = ?", [number])
        if not rows:
            return None
        place = self._reader.db.execute(
            "SELECT e.seq, e.offset, e.length, s.path, s.log FROM events e JOIN segments s ON s.id = e.segment"
            " WHERE e.id = ?",
            (number,),
        ).fetchone()
        found: dict[str, Any] = {"row": rows[0], "file": place["path"], "offset": place["offset"]}
        try:
            with Path(place["path"]).open("rb") as file:
                line = read_at(file.fileno(), place["length"], place["offset"])
                before, _ = last_line(file.fileno(), place["offset"])
            chain = _chain_place(place["log"], line + b"\n", before, self._key)
            record = msgspec.json.decode(line)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
            return {**found, **_UNREAD, "problem": f"the line cannot be read: {problem}"}
        if (record.get("seq", 0), record.get("event")) != (place["seq"], rows[0].event):
            return {**found, **_UNREAD, "problem": "the log was changed since it was read"}
        return {**found, "record": record, "line": line.decode("utf-8", "replace"), "chain": chain}

    # -- sessions --------------------------------------------------------------------------------------------------

    def sessions(self, cursor: str, limit: int, text: str = "") -> Sessions:
        """Sessions, the latest first; with `text`, those whose prompt, folder, user or name has it."""
        before = position(cursor)
        clause = "WHERE (last, id) < (?, ?)" if before else "WHERE last IS NOT NULL"
        if text:
            looked = " OR ".join(f"{name} LIKE ? ESCAPE '\\'" for name in ("name", "title", "cwd", "user"))
            clause += f" AND ({looked})"
        found = self._reader.db.execute(
            f"SELECT * FROM sessions {clause} ORDER BY last DESC, id DESC LIMIT ?",
            [*(before or ()), *([like(text)] * 4 if text else []), limit],
        ).fetchall()
        end = f"{found[-1]['last']}.{found[-1]['id']}" if len(found) == limit else ""
        return Sessions([_session(one) for one in found], end)

    def session(self, name: str, cursor: str, limit: int) -> SessionEvents | None:
        """One session's events."""
        found = self._reader.db.execute("SELECT * FROM sessions WHERE name = ?", (name[:MOST_NAME],)).fetchone()
        if found is None:
            return None
        after = position(cursor) or (-1, 0)
        rows = self._reader.rows(
            "WHERE e.run = ? AND (e.time, e.id) > (?, ?) ORDER BY e.time, e.id LIMIT ?", [found["id"], *after, limit]
        )
        return SessionEvents(_session(found), rows, f"{rows[-1].time}.{rows[-1].id}" if len(rows) == limit else "")

    # -- hooks -----------------------------------------------------------------------------------------------------

    def hooks(self) -> list[HookStats]:
        """Every hook that ever ran."""
        return hook_stats(self._reader.db)

    def hook(self, name: str) -> HookSeries | None:
        """One hook over time."""
        return hook_series(self._reader.db, name, self._reader.width)

    def coverage(self) -> Coverage:
        """What was looked at."""
        names = ", ".join(f"'{name}'" for name in _GATES)
        cells = self._reader.db.execute(
            "SELECT v.name, coalesce(t.name, ''), sum(c.n), sum(CASE WHEN c.hookset THEN c.n ELSE 0 END) FROM cube c"
            f" JOIN names v ON v.id = c.event LEFT JOIN names t ON t.id = c.tool WHERE v.name IN ({names})"
            " GROUP BY 1, 2 ORDER BY 3 DESC LIMIT ?",
            (_MOST_NAMES,),
        )
        ran = {stats[0] for stats in self._reader.db.execute("SELECT name FROM names WHERE kind = 3")}
        never = [hook for hook in self._configured if hook.name not in ran]
        return Coverage([ToolCoverage(*cell) for cell in cells], never, len(self._configured))

    # -- health ----------------------------------------------------------------------------------------------------

    def health(self) -> Health:
        """Whether the logs are whole."""
        gaps = self.page(Filter(verdict=("gap",)), "", _MOST_GAPS).rows
        writers = self._reader.db.execute(
            "SELECT coalesce(nullif(user, ''), '?'), sum(events) FROM sessions GROUP BY 1 ORDER BY 2 DESC LIMIT 50"
        )
        logs = [
            _log_health(self._reader, log, self._checks.get(str(log)), checking=str(log) in self._checking)
            for log in self._index.logs
        ]
        return Health(
            logs, [Gap(one.id, one.time, one.about) for one in gaps],
            [(name, n) for name, n in writers], str(self._index.path), self._index.path.stat().st_size,
            self._index.last_id, [one.summary() for one in push_states() if Path(one.log) in self._index.logs],
        )  # fmt: skip

    def check(self) -> None:
        """Verify every log's chain, in this thread."""
        for log in map(str, self._index.logs):
            self._checking.add(log)
            try:
                self._checks[log] = [str(one) for one in AuditFile(log, key=self._key).verify()[:_MOST_BREAKS]]
            except HooklineError as problem:
                self._checks[log] = [str(problem)]
            finally:
                self._checking.discard(log)


def _log_health(reader: IndexReader, log: Path, breaks: list[str] | None, *, checking: bool) -> LogHealth:
    name = str(log)
    lines, unreadable = reader.db.execute(
        "SELECT coalesce(sum(lines), 0), coalesce(sum(unreadable), 0) FROM segments WHERE log = ?", (name,)
    ).fetchone()
    return LogHealth(
        name, [(segment.path, segment.size) for segment in LogReader(log).segments()], lines, unreadable,
        _is_keyed(name), *reader.span(), shutil.disk_usage(log.parent).free,
        whole=None if breaks is None else not breaks, breaks=breaks or [], checking=checking,
    )  # fmt: skip


def _session(found: sqlite3.Row) -> SessionSummary:
    return SessionSummary(**{name: found[name] for name in SessionSummary.__struct_fields__})


def _most(counts: Counter[str]) -> dict[str, int]:
    """The names that come up most, and no more of them than a list can show."""
    del counts[""]
    return dict(counts.most_common(_MOST_NAMES))


def _chain_place(log: str, line: bytes, before: bytes, key: bytes | None) -> ChainPlace | None:
    """A line's place in the chain, checked against the line before it; `None` if it is not a line of a chain."""
    here, start = link_of(line), link_before(line)
    if here is None or start is None:
        return None
    if key is None and _is_keyed(log):
        return ChainPlace(here.seq, here.hash, start.hash, None, "written with a key; start with `--key-file` to check")
    last = link_of(before) if before else None
    [(_, problem)] = follow([line], start if last is None else last, key)
    return ChainPlace(here.seq, here.hash, start.hash, problem is None, problem or "")


def _is_keyed(log: str) -> bool:
    """Whether the log's hashes can be checked only with its key."""
    head = read_head(AuditFile(log).head_path)
    return head is not None and head.keyed
