"""The index over audit logs: built once, then kept up with the logs as they grow. It holds nothing that they do not."""

import contextlib
import gc
import hashlib
import os
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from hookline.core.files import private_folder, try_lock
from hookline.errors import HooklineError
from hookline.records.audit.reader import Cursor, LogReader, Segment, is_at, read_lines
from hookline.records.console.records import FAILED, MOST_NAME, VERDICTS, EventRecord, decode, milliseconds, slot

_CHUNK = 8 << 20
_TAIL_BYTES = 64
_FIRST_WIDTH = 50
_MOST_SLOW = 10
_MOST_BUCKETS = 512
_DENY = VERDICTS.index("deny")
_ASKED = (VERDICTS.index("ask"), VERDICTS.index("defer"))
VERSION = 3
EVENT, TOOL, HOOK, AGENT, BY, HOOKSET = range(1, 7)
_MOST_REMEMBERED = 20_000
_SUMS = {
    "cube": "event, tool, verdict, failed, hookset",
    "hook_runs": "hook, slot, denied, failed",
}  # the tables of sums over time: what each row counts, beside its bucket
_SEEN = (
    "INSERT INTO segments (log, path, identity, done, tail, lines, unreadable) VALUES (?, ?, ?, 0, x'', 0, 0)"
    " ON CONFLICT (identity) DO UPDATE SET path = excluded.path WHERE path != excluded.path"
)  # a rotated file keeps its events under its new name
_SHARED = "PRAGMA journal_mode=WAL"  # lets others read while one writes


def default_path(logs: Iterable[Path]) -> Path:
    """Where the index over these logs lies: in the user's cache, so that logs may be read-only."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256("\0".join(sorted(map(str, logs))).encode()).hexdigest()[:16]
    return cache / "hookline" / "console" / f"{digest}.sqlite"


class LogIndex:
    """Writes the index; `refresh` reads what the logs have that it has not, and says how many events that were.

    One process writes an index at a time; a second one makes an index of its own beside it. A log that is not the one
    that was indexed (shorter, replaced) makes the index start over.
    """

    def __init__(self, path: Path, logs: Iterable[Path]) -> None:
        self.path, self._held = _own(path.absolute())
        self._borrowed = self.path != path.absolute()
        self.logs: tuple[Path, ...] = tuple(logs)
        self.progress: tuple[int, int] = (0, 0)
        self.generation: int = 0
        self._lock = threading.Lock()
        self._open(_reopen(self.path))

    def _open(self, db: sqlite3.Connection | None) -> None:
        self._db = _create(self.path) if db is None else db
        self.complete: bool = db is not None
        self.generation += 1
        self._names = Names(self._db)
        found = dict(self._db.execute("SELECT key, value FROM meta"))
        self._width = int(found.get("width", _FIRST_WIDTH))
        self._before = int(found.get("before", 0))
        self.last_id: int = self._db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0]

    def close(self) -> None:
        """Close the database; what was indexed stays, unless another process already keeps an index of these logs."""
        with self._lock:
            self._db.close()
            os.close(self._held)
            if self._borrowed:
                _remove(self.path)
                self.path.with_name(self.path.name + ".lock").unlink(missing_ok=True)

    def refresh(self, is_ended: Callable[[], bool] = lambda: False) -> int:
        with self._lock:
            found = [segment for log in self.logs for segment in LogReader(log).segments()]
            if not self._same_logs(found):
                self._db.close()
                self._open(None)
            self._db.executemany(_SEEN, [(one.log, one.path, one.identity) for one in found])
            known = {row[0]: row[1:] for row in self._db.execute("SELECT identity, id, done FROM segments")}
            todo = [(one, *known[one.identity]) for one in found if one.size > known[one.identity][1]]
            before = self.last_id
            if todo or not self.complete:
                self._read(todo, is_ended)
            return self.last_id - before

    def _same_logs(self, found: list[Segment]) -> bool:
        """Whether the logs are those that were indexed: grown, renamed or pruned, and the newest of each there."""
        newest = self._db.execute("SELECT identity, max(id) FROM segments GROUP BY log")
        here = {segment.identity for segment in found}
        known = {row[0]: Cursor(*row) for row in self._db.execute("SELECT identity, done, tail FROM segments")}
        return all(identity in here for identity, _ in newest) and all(
            is_at(segment, known[segment.identity]) for segment in found if segment.identity in known
        )

    def _read(self, todo: list[tuple[Segment, int, int]], is_ended: Callable[[], bool]) -> None:
        self.progress = (0, sum(segment.size - done for segment, _, done in todo))
        for segment, number, start in todo:
            done = start
            while data := read_lines(segment, done, _CHUNK):
                self._write(number, done, data, done + len(data))
                done += len(data)
                self.progress = (self.progress[0] + len(data), self.progress[1])
                if is_ended():
                    return
        if not self.complete:
            self._db.executescript(_sql("indices"))
            self._db.execute("ANALYZE")
            self._put(version=VERSION, complete=1)
            self._db.execute(_SHARED)
            self.complete = True

    def _write(self, segment: int, offset: int, data: bytes, done: int) -> None:
        """One batch, in one transaction: either all of it is in the index or nothing."""
        collecting = gc.isenabled()
        gc.disable()  # a batch makes no cycles, and looking for them takes a third of the time
        try:
            with self._db as db:
                db.execute("BEGIN")
                batch = Batch(self._names, self.last_id + 1, self._width, self._before)
                lines = data.removesuffix(b"\n").split(b"\n")
                batch.add(segment, offset, lines)
                self._width = add_batch(db, batch, self._width)
                db.execute(
                    "UPDATE segments SET done = ?, tail = ?, lines = lines + ?, unreadable = unreadable + ?"
                    " WHERE id = ?",
                    (done, data[-_TAIL_BYTES:], len(lines), batch.unreadable, segment),
                )
                self._before = batch.before
                self._put(before=self._before, width=self._width)
        finally:
            if collecting:
                gc.enable()
        self.last_id += len(batch.rows)

    def _put(self, **values: int) -> None:
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))


def _own(path: Path) -> tuple[Path, int]:
    """A path that no other process writes an index at, and the lock that says so."""
    private_folder(path.parent)
    for own in (path, path.with_name(f"{path.stem}-{os.getpid()}-{time.monotonic_ns()}{path.suffix}")):
        if (held := try_lock(own.with_name(own.name + ".lock"))) is not None:
            return own, held
    raise HooklineError(f"{path}: another process keeps this index; name another file with --index")


class Names:
    """Numbers for names; asked once per event and kind, so what was asked lately is remembered."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        remembered = lru_cache(_MOST_REMEMBERED)
        kinds = [remembered(partial(self._stored, kind)) for kind in (EVENT, TOOL, HOOK, AGENT, BY)]
        self.event, self.tool, self.hook, self.agent, self.by = kinds
        self.hookset: Callable[[tuple[str, ...]], int] = remembered(self._hookset)
        self.session: Callable[[str], int] = remembered(partial(self._number, "sessions", ("name",)))

    def _stored(self, kind: int, name: str) -> int:
        return self._number("names", ("kind", "name"), kind, name[:MOST_NAME]) if name else 0

    def _hookset(self, hooks: tuple[str, ...]) -> int:
        """The number of a set of hooks that answered together; 0 is the empty one."""
        numbers = sorted({self.hook(hook) for hook in hooks})
        found = self._number("names", ("kind", "name"), HOOKSET, " ".join(map(str, numbers)))
        self._db.executemany("INSERT OR IGNORE INTO hooksets VALUES (?, ?)", [(found, hook) for hook in numbers])
        return found

    def _number(self, table: str, columns: tuple[str, ...], *values: int | str) -> int:
        """The number of a row with these values, which is added if it is not there."""
        wanted = " AND ".join(f"{column} = ?" for column in columns)
        found = self._db.execute(f"SELECT id FROM {table} WHERE {wanted}", values).fetchone()
        if found is None:
            places = ", ".join("?" * len(values))
            added = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) RETURNING id"
            found = self._db.execute(added, values).fetchone()
        return int(found[0])


class Batch:
    """Takes lines; `rows` are the events, of which the first is number `first`."""

    def __init__(self, names: Names, first: int, width: int, before: int) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.first = first
        self.runs: list[tuple[int, int, int, bool, bool]] = []
        """Time, hook, slot of how long it took (-1: skipped), denial and failure of each run."""
        self.slow: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        self.sessions: dict[int, list[str]] = {}  # title, cwd, user
        self.unreadable: int = 0
        self.names = names
        self._width = width
        self.before: int = before
        self._now = int(time.time() * 1000)

    def add(self, segment: int, offset: int, lines: Iterable[bytes]) -> None:
        for line in lines:
            length = len(line)
            record = decode(line) if length else None
            if record is None:
                self.unreadable += 1
            else:
                self._event(segment, offset, length, record)
            offset += length + 1

    def _event(self, segment: int, offset: int, length: int, record: EventRecord) -> None:
        names = self.names
        number = self.first + len(self.rows)
        moment = self.before = milliseconds(record.time, self.before, self._now)
        hooks = record.hooks
        event, tool = names.event(record.event), names.tool(record.tool or "")
        hookset = names.hookset(tuple([run.hook for run in hooks])) if hooks else 0
        verdict, failed, about = record.verdict, bool(hooks) and record.failed, record.about
        run = names.session(record.run[:MOST_NAME])
        self.rows.append((
            number, segment, offset, length, record.seq, moment, run, event, tool, verdict, failed, hookset,
            names.agent(record.agent or ""), names.agent(record.agent_type or ""), record.ms, record.duration_ms,
            names.by(record.by or ""), record.tool_use_id, about, record.reason,
        ))  # fmt: skip
        for each in hooks:
            hook, place = names.hook(each.hook), -1 if each.status == "skipped" else slot(each.ms)
            self.runs.append((moment // self._width, hook, place, each.decision == "deny", each.status in FAILED))
            slow = self.slow[hook]
            if place >= 0 and (len(slow) < _MOST_SLOW or each.ms > slow[-1][0]):
                slow.append((each.ms, number))
                slow.sort(reverse=True)
                del slow[_MOST_SLOW:]
        about_it = self.sessions.setdefault(run, ["", record.cwd, record.user])
        if record.prompt and not about_it[0]:
            about_it[0] = about


def add_batch(db: sqlite3.Connection, batch: Batch, width: int) -> int:
    """Add a batch to the tables; its sums cover `width` milliseconds each; how much they cover from now on."""
    many = db.executemany
    many(f"INSERT INTO events VALUES ({', '.join('?' * 20)})", batch.rows)
    db.execute(
        f"INSERT INTO cube SELECT time / ?, {_SUMS['cube']}, count(*) FROM events WHERE id >= ?"
        " GROUP BY 1, 2, 3, 4, 5, 6 ON CONFLICT DO UPDATE SET n = n + excluded.n",
        (width, batch.first),
    )
    many(
        f"INSERT INTO hook_runs (bucket, {_SUMS['hook_runs']}, n) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET n = n + excluded.n",
        [(*run, n) for run, n in Counter(batch.runs).items()],
    )
    db.execute(
        "UPDATE sessions AS s SET first = min(coalesce(s.first, new.first), new.first), last = max(coalesce(s.last,"
        " new.last), new.last), events = s.events + new.events, denied = s.denied + new.denied,"
        " asked = s.asked + new.asked, failed = s.failed + new.failed, tools = s.tools + new.tools FROM"
        " (SELECT run, min(time) AS first, max(time) AS last, count(*) AS events, sum(verdict = ?1) AS denied,"
        " sum(verdict IN (?2, ?3)) AS asked, sum(failed) AS failed, sum(event = ?4) AS tools"
        " FROM events WHERE id >= ?5 GROUP BY run) AS new WHERE s.id = new.run",
        (_DENY, *_ASKED, batch.names.event("PreToolUse"), batch.first),
    )
    many(
        "UPDATE sessions SET title = coalesce(nullif(title, ''), ?), cwd = coalesce(nullif(cwd, ''), ?),"
        " user = coalesce(nullif(user, ''), ?) WHERE id = ?",
        [(*said, run) for run, said in batch.sessions.items()],
    )
    for hook, slow in batch.slow.items():
        many("INSERT INTO slowest VALUES (?, ?, ?)", [(hook, *one) for one in slow])
        db.execute(
            "DELETE FROM slowest WHERE hook = ?1 AND (ms, event) NOT IN"
            " (SELECT ms, event FROM slowest WHERE hook = ?1 ORDER BY ms DESC LIMIT ?2)",
            (hook, _MOST_SLOW),
        )
    return width * _coarsen_buckets(db)


def _coarsen_buckets(db: sqlite3.Connection) -> int:
    """Keep the sums over time small: as the logs span more time, each sum covers so many times as much of it."""
    first, last = db.execute("SELECT min(bucket), max(bucket) FROM cube").fetchone()
    if first is None or last - first < _MOST_BUCKETS:
        return 1
    factor = 2
    while (last - first) // factor >= _MOST_BUCKETS // 2:
        factor *= 2
    for table, keys in _SUMS.items():
        of = f"bucket / {factor}, {keys}"
        db.execute(f"CREATE TEMP TABLE wider AS SELECT {of}, sum(n) FROM {table} GROUP BY {of}")
        db.execute(f"DELETE FROM {table}")
        db.execute(f"INSERT INTO {table} (bucket, {keys}, n) SELECT * FROM wider")
        db.execute("DROP TABLE wider")
    return factor


def _sql(name: str) -> str:
    return Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")


def _create(path: Path) -> sqlite3.Connection:
    """An empty index, open for a bulk load: fast, and worthless if it is interrupted."""
    _remove(path)
    path.touch(0o600)
    db = _connect(path)
    db.execute("PRAGMA journal_mode=OFF")
    db.executescript(_sql("tables"))
    return db


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _reopen(path: Path) -> sqlite3.Connection | None:
    """An index that was made whole before, open for writing; `None` if there is none that can be used."""
    if not path.is_file():
        return None
    db = _connect(path)
    with contextlib.suppress(sqlite3.DatabaseError):  # it is damaged, or not an index at all
        found = dict(db.execute("SELECT key, value FROM meta"))
        if found.get("version") == VERSION and found.get("complete"):
            db.execute(_SHARED)
            return db
    db.close()
    return None


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.executescript("PRAGMA cache_size=-32768; PRAGMA mmap_size=1073741824")
    return db


def _connect(path: Path) -> sqlite3.Connection:
    """A connection that is fast rather than safe: what is lost is made again from the logs."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with contextlib.suppress(sqlite3.DatabaseError):  # not a database: the first question says so
        db.executescript("PRAGMA synchronous=OFF; PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY")
    return db
