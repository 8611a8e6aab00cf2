"""What the console asks: the index over audit logs, and the logs themselves. Answers are JSON as the page reads it.

Each query here stays quick on a million events, also where nothing matches. Times are in milliseconds. A list is
`rows` and `next`, a cursor that continues it and is empty at the end.
"""

import shutil
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.files import read_at
from hookline.core.hooks import Hook
from hookline.errors import HooklineError
from hookline.events import CATALOG
from hookline.records.audit.chain import follow, link_before, link_of, read_head
from hookline.records.audit.log_file import AuditFile, last_line
from hookline.records.audit.push import push_states
from hookline.records.audit.reader import LogReader
from hookline.records.console.index import EVENT, HOOK, TOOL, LogIndex, open_reader
from hookline.records.console.records import CODES, MOST_NAME, VERDICTS, percentile

_SPARK = 40
_MOST_SEARCHED = 250_000  # events, the newest, in which a text is counted: so many are looked through within a second
_SEARCH_ROWS = 25_000
_SEARCH_SECONDS = 0.2
_MOST_GAPS = 200
_MOST_NAMES = 200
_MOST_BREAKS = 100
_UNREAD: dict[str, Any] = {"record": {}, "line": "", "chain": None}
_GATES = tuple(row.name for row in CATALOG.values() if row.gate and row.audited)
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_RUNS = "sum(n * (slot >= 0)) AS runs, sum(n * denied) AS denied, sum(n * failed) AS failed"
_SESSION = "SELECT id, name, first, last, events, tools, denied, asked, failed, title, cwd, user FROM sessions "

Values = dict[str, Any]


class Filter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which events: every field that is set must match; several verdicts mean any of them."""

    verdict: tuple[str, ...] = ()
    event: str = ""
    tool: str = ""
    hook: str = ""
    session: str = ""
    text: str = ""
    failed: bool = False
    unseen: bool = False
    since: int = 0
    until: int = 0


class IndexReader:
    """The index as it is now, asked from any thread: a connection for each."""

    def __init__(self, index: LogIndex) -> None:
        self._index = index
        self._local = threading.local()

    def ask(self, query: str, values: Iterable[Any] = ()) -> list[sqlite3.Row]:
        generation = self._index.generation
        if getattr(self._local, "generation", None) != generation:
            self._local.db = open_reader(self._index.path)
            self._local.generation = generation
        found: list[sqlite3.Row] = self._local.db.execute(query, list(values)).fetchall()
        return found

    def conditions(self, wanted: Filter, time: str = "time", width: int = 1) -> tuple[list[str], list[Any]]:
        """A filter as the parts of a WHERE clause, and their values; `time` counts units of `width` milliseconds."""
        codes = [CODES.get(word, -1) for word in wanted.verdict]
        hooksets = self.ask(
            "SELECT h.hookset FROM hooksets h JOIN names n ON n.id = h.hook WHERE n.kind = ? AND n.name = ?",
            (HOOK, wanted.hook),
        )
        run = self.ask("SELECT id FROM sessions WHERE name = ?", (wanted.session,))
        text = like(wanted.text)
        parts: tuple[tuple[Any, str, list[Any]], ...] = (
            (wanted.verdict, f"verdict IN ({', '.join('?' * len(codes))})", codes),
            (wanted.event, "event = ?", [self.number(EVENT, wanted.event)]),
            (wanted.tool, "tool = ?", [self.number(TOOL, wanted.tool)]),
            (wanted.hook, f"hookset IN ({', '.join(str(one[0]) for one in hooksets) or '-1'})", []),
            (wanted.failed, "failed = 1", []),
            (wanted.unseen, "hookset = 0", []),
            (wanted.session, "run = ?", [run[0][0] if run else -1]),
            (wanted.since, f"{time} >= ?", [wanted.since // width]),
            (wanted.until, f"{time} < ?", [wanted.until // width]),
            (wanted.text, "(about LIKE ? ESCAPE '\\' OR reason LIKE ? ESCAPE '\\')", [text, text]),
        )
        given = [(part, values) for said, part, values in parts if said]
        return [part for part, _ in given], [value for _, values in given for value in values]

    def number(self, kind: int, name: str) -> int:
        """The number that stands for a name; -1 if no record has it."""
        found = self.ask("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name))
        return found[0][0] if found else -1

    def rows(self, clause: str, values: Iterable[Any]) -> list[Values]:
        found = map(dict, self.ask(f"SELECT * FROM event_rows {clause}", values))
        return [{**one, "verdict": VERDICTS[one["verdict"]], "failed": bool(one["failed"])} for one in found]

    def newest(self, parts: Sequence[str], values: Iterable[Any]) -> list[Values]:
        """The events that were read last of those that match; the last of the values is how many at most."""
        ids = f"SELECT id FROM events NOT INDEXED{_where(parts)} ORDER BY id DESC LIMIT ?"
        return self.rows(f"WHERE id IN ({ids}) ORDER BY id DESC", values)

    def span(self) -> dict[str, int]:
        [found] = self.ask("SELECT (SELECT min(time) FROM events), (SELECT max(time) FROM events)")
        return {"first": found[0] or 0, "last": found[1] or 0}

    @property
    def width(self) -> int:
        found = self.ask("SELECT value FROM meta WHERE key = 'width'")
        return found[0][0] if found else 50

    def cells(self, wanted: Filter, columns: str) -> list[sqlite3.Row]:
        """Counts by these columns: from the sums where they are fine enough, else from the events."""
        width = self.width
        if wanted.session or wanted.text or wanted.since % width or wanted.until % width:
            parts, values = self.conditions(wanted)
            if wanted.text:
                parts.append("id > ?")
                values.append((self.ask("SELECT max(id) FROM events")[0][0] or 0) - _MOST_SEARCHED)
            source, count = f"(SELECT *, time / {width} AS bucket FROM events{_where(parts)})", "count(*)"
        else:
            parts, values = self.conditions(wanted, "bucket", width)
            source, count = f"(SELECT * FROM cube{_where(parts)})", "sum(n)"
        return self.ask(f"SELECT {columns}, {count} AS n FROM {source} GROUP BY {columns}", values)


class LogStore:
    """Asks the index, and the logs themselves for what only they have. May be asked from any thread.

    `configured` are today's hooks, whether or not they ever ran.
    """

    def __init__(self, index: LogIndex, *, key: bytes | None = None, configured: Iterable[Hook] = ()) -> None:
        self.index: LogIndex = index
        self._key = key
        self._configured = tuple(configured)
        self._reader = IndexReader(index)
        self._ask = self._reader.ask
        self._checks: dict[str, list[str] | None] = {}
        self._checking: set[str] = set()

    def status(self) -> Values:
        index, (done, total) = self.index, self.index.progress
        span = self._reader.span() if index.complete else {"first": 0, "last": 0}
        far = {"ready": index.complete, "done": done, "total": total}
        return {**far, "events": index.last_id, "last_id": index.last_id, **span}

    def page(self, wanted: Filter, cursor: str, limit: int) -> Values:
        parts, values = self._reader.conditions(wanted)
        before = position(cursor)
        if wanted.text:
            top = before[1] if before else self.index.last_id + 1
            return _search(self._reader, (parts, values), top, limit)
        parts += ["(time, id) < (?, ?)"] if before else []
        ids = f"SELECT id FROM events{_where(parts)} ORDER BY time DESC, id DESC LIMIT ?"
        values += [*(before or ()), limit]
        return _page(self._reader.rows(f"WHERE id IN ({ids}) ORDER BY time DESC, id DESC", values), limit)

    def after(self, last_id: int, wanted: Filter, limit: int) -> tuple[list[Values], int]:
        """What came in after an event, newest first, and how many that were in all."""
        parts, values = self._reader.conditions(wanted)
        parts, values = [*parts, "id > ?"], [*values, last_id]
        [total] = self._ask(f"SELECT count(*) FROM events NOT INDEXED{_where(parts)}", values)
        return self._reader.newest(parts, [*values, limit]), total[0]

    def facets(self, wanted: Filter) -> Values:
        """How many events match, and how many would for each value of each filter."""
        cells = self._reader.cells(wanted, "event, tool, verdict, failed, hookset")
        numbers = ", ".join(str(number) for number in {cell[place] for cell in cells for place in (0, 1)})
        names: dict[int, str] = dict(map(tuple, self._ask(f"SELECT id, name FROM names WHERE id IN ({numbers})")))
        hooks: defaultdict[int, list[str]] = defaultdict(list)
        sets = ", ".join(str(number) for number in {cell["hookset"] for cell in cells})
        for hookset, hook in self._ask(
            f"SELECT h.hookset, n.name FROM hooksets h JOIN names n ON n.id = h.hook WHERE h.hookset IN ({sets})"
        ):
            hooks[hookset].append(hook)
        sums: dict[str, Counter[str]] = {kind: Counter() for kind in ("verdict", "event", "tool", "hook")}
        for event, tool, verdict, _, hookset, n in cells:
            sums["verdict"][VERDICTS[verdict]] += n
            sums["event"][names.get(event, "")] += n
            sums["tool"][names.get(tool, "")] += n
            for hook in hooks[hookset]:
                sums["hook"][hook] += n
        failed = sum(cell["n"] for cell in cells if cell["failed"])
        return {"total": sums["verdict"].total(), "failed": failed, **{kind: _most(sums[kind]) for kind in sums}}

    def timeline(self, wanted: Filter) -> Values:
        width = self._reader.width
        buckets: dict[int, dict[str, int]] = {}
        for found in self._reader.cells(wanted, "bucket, verdict"):
            buckets.setdefault(found["bucket"] * width, {})[VERDICTS[found["verdict"]]] = found["n"]
        return {"width": width, "buckets": sorted(buckets.items())}

    def event(self, number: int) -> Values | None:
        """Everything about one event: its row, its record, its line and its place in the chain."""
        if not (rows := self._reader.rows("WHERE id = ?", [number])):
            return None
        [place] = self._ask(
            "SELECT e.seq, e.offset, e.length, s.path, s.log FROM events e JOIN segments s ON s.id = e.segment"
            " WHERE e.id = ?",
            (number,),
        )
        found: Values = {"row": rows[0], "file": place["path"], "offset": place["offset"]}
        try:
            with Path(place["path"]).open("rb") as file:
                line = read_at(file.fileno(), place["length"], place["offset"])
                before, _ = last_line(file.fileno(), place["offset"])
            chain = _chain_place(place["log"], line + b"\n", before, self._key)
            record = msgspec.json.decode(line)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
            return {**found, **_UNREAD, "problem": f"the line cannot be read: {problem}"}
        said = (record.get("seq", 0), record.get("event")) if isinstance(record, dict) else None
        if said != (place["seq"], rows[0]["event"]):
            return {**found, **_UNREAD, "problem": "the log was changed since it was read"}
        return {**found, "record": record, "line": line.decode("utf-8", "replace"), "chain": chain}

    def sessions(self, cursor: str, limit: int, text: str = "") -> Values:
        """Sessions, the latest first; with `text`, those whose prompt, folder, user or name has it."""
        before = position(cursor)
        clause = "WHERE (last, id) < (?, ?)" if before else "WHERE last IS NOT NULL"
        if text:
            looked = " OR ".join(f"{name} LIKE ? ESCAPE '\\'" for name in ("name", "title", "cwd", "user"))
            clause += f" AND ({looked})"
        values = [*(before or ()), *([like(text)] * 4 if text else []), limit]
        found = self._ask(f"{_SESSION}{clause} ORDER BY last DESC, id DESC LIMIT ?", values)
        return _page([dict(one) for one in found], limit, by="last")

    def session(self, name: str, cursor: str, limit: int) -> Values | None:
        if not (found := self._ask(f"{_SESSION}WHERE name = ?", (name[:MOST_NAME],))):
            return None
        values = [found[0]["id"], *(position(cursor) or (-1, 0)), limit]
        ids = "SELECT id FROM events WHERE run = ? AND (time, id) > (?, ?) ORDER BY time, id LIMIT ?"
        rows = self._reader.rows(f"WHERE id IN ({ids}) ORDER BY time, id", values)
        return {"session": dict(found[0]), **_page(rows, limit)}

    def hooks(self) -> list[Values]:
        """How every hook that ever was asked has done, the busiest first; `spark` is its runs over time."""
        times: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for hook, slot, n in self._ask("SELECT hook, slot, sum(n) FROM hook_runs WHERE slot >= 0 GROUP BY 1, 2"):
            times[hook][slot] = n
        slowest: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        for hook, ms, event in self._ask("SELECT hook, ms, event FROM slowest ORDER BY ms DESC"):
            slowest[hook].append((ms, event))
        sparks: defaultdict[int, list[int]] = defaultdict(lambda: [0] * _SPARK)
        [(first, last)] = self._ask("SELECT min(bucket), max(bucket) FROM hook_runs")
        for hook, bucket, n in self._ask("SELECT hook, bucket, sum(n) FROM hook_runs WHERE slot >= 0 GROUP BY 1, 2"):
            sparks[hook][(bucket - first) * _SPARK // (last - first + 1)] += n
        rows = self._ask(
            f"SELECT r.hook, a.name, {_RUNS}, sum(n * (slot < 0)) AS skipped"
            " FROM hook_runs r JOIN names a ON a.id = r.hook GROUP BY 1, 2 ORDER BY 3 DESC"
        )
        return [
            {
                **{name: row[name] for name in ("name", "runs", "denied", "failed", "skipped")},
                **{name: percentile(times[row["hook"]], share) for name, share in _SHARES.items()},
                "slowest": slowest[row["hook"]],
                "spark": sparks[row["hook"]],
            }
            for row in rows
        ]

    def hook(self, name: str) -> Values | None:
        """One hook over time, a column per figure; a stretch without runs has no percentiles."""
        if (number := self._reader.number(HOOK, name)) < 0:
            return None
        width, times = self._reader.width, defaultdict[int, dict[int, int]](dict)
        runs = "FROM hook_runs WHERE hook = ?"
        for bucket, slot, n in self._ask(f"SELECT bucket, slot, sum(n) {runs} AND slot >= 0 GROUP BY 1, 2", (number,)):
            times[bucket][slot] = n
        rows = self._ask(f"SELECT bucket, {_RUNS} {runs} GROUP BY 1 ORDER BY 1", (number,))
        slots = [times[row["bucket"]] for row in rows]
        return {
            "name": name,
            "time": [row["bucket"] * width for row in rows],
            **{column: [row[column] for row in rows] for column in ("runs", "denied", "failed")},
            **{column: [percentile(one, share) if one else None for one in slots] for column, share in _SHARES.items()},
        }

    def coverage(self) -> Values:
        """What hooks looked at, and which hooks never had anything to look at."""
        names = ", ".join(f"'{name}'" for name in _GATES)
        cells = self._ask(
            "SELECT v.name AS event, coalesce(t.name, '') AS tool, sum(c.n) AS calls,"
            " sum(CASE WHEN c.hookset THEN c.n ELSE 0 END) AS seen FROM cube c"
            f" JOIN names v ON v.id = c.event LEFT JOIN names t ON t.id = c.tool WHERE v.name IN ({names})"
            " GROUP BY 1, 2 ORDER BY 3 DESC LIMIT ?",
            (_MOST_NAMES,),
        )
        ran = {name for (name,) in self._ask("SELECT name FROM names WHERE kind = ?", (HOOK,))}
        never = [
            {"name": hook.name, "events": [event.event_name for event in hook.events], "matcher": hook.matcher.pattern,
             "source": hook.source}
            for hook in self._configured if hook.name not in ran
        ]  # fmt: skip
        return {"tools": list(map(dict, cells)), "never": never, "configured": len(self._configured)}

    def health(self) -> Values:
        """Whether what the console shows can be believed: each log (`whole` is `None` until it is checked), gaps."""
        gaps = self.page(Filter(verdict=("gap",)), "", _MOST_GAPS)["rows"]
        writers = self._ask(
            "SELECT coalesce(nullif(user, ''), '?'), sum(events) FROM sessions GROUP BY 1 ORDER BY 2 DESC LIMIT 50"
        )
        return {
            "logs": [self._log_health(log) for log in self.index.logs],
            "gaps": [{"id": one["id"], "time": one["time"], "missing": one["about"]} for one in gaps],
            "writers": list(map(tuple, writers)),
            "index_path": str(self.index.path),
            "index_bytes": self.index.path.stat().st_size,
            "events": self.index.last_id,
            "pushes": [one.summary() for one in push_states() if Path(one.log) in self.index.logs],
        }

    def _log_health(self, log: Path) -> Values:
        breaks = self._checks.get(str(log))
        [(lines, unreadable)] = self._ask(
            "SELECT coalesce(sum(lines), 0), coalesce(sum(unreadable), 0) FROM segments WHERE log = ?", (str(log),)
        )
        return {
            "path": str(log), "files": [(segment.path, segment.size) for segment in LogReader(log).segments()],
            "lines": lines, "unreadable": unreadable, "keyed": _is_keyed(str(log)), **self._reader.span(),
            "free": shutil.disk_usage(log.parent).free, "whole": None if breaks is None else not breaks,
            "breaks": breaks or [], "checking": str(log) in self._checking,
        }  # fmt: skip

    def check(self) -> None:
        for log in map(str, self.index.logs):
            self._checking.add(log)
            try:
                self._checks[log] = [str(one) for one in AuditFile(log, key=self._key).verify()[:_MOST_BREAKS]]
            except HooklineError as problem:
                self._checks[log] = [str(problem)]
            finally:
                self._checking.discard(log)


def _search(reader: IndexReader, where: tuple[list[str], list[Any]], top: int, limit: int) -> Values:
    """Text is searched for back from the newest event, for a moment; the cursor says how far that went."""
    parts, values = where
    rows: list[Values] = []
    deadline = time.monotonic() + _SEARCH_SECONDS
    while top > 1 and len(rows) < limit and time.monotonic() < deadline:
        bottom = max(top - _SEARCH_ROWS, 1)
        rows += reader.newest([*parts, "id >= ?", "id < ?"], [*values, bottom, top, limit - len(rows)])
        top = rows[-1]["id"] if len(rows) >= limit else bottom
    return {"rows": rows, "next": f"0.{top}" if top > 1 else ""}


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


def _where(parts: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _page(rows: list[Values], limit: int, by: str = "time") -> Values:
    return {"rows": rows, "next": f"{rows[-1][by]}.{rows[-1]['id']}" if len(rows) == limit else ""}


def _most(counts: Counter[str]) -> dict[str, int]:
    """The names that come up most, and no more of them than a list can show."""
    del counts[""]
    return dict(counts.most_common(_MOST_NAMES))


def _chain_place(log: str, line: bytes, before: bytes, key: bytes | None) -> Values | None:
    """A line's place in the chain, checked against the line before it; `None` if it is not a line of a chain."""
    here, start = link_of(line), link_before(line)
    if here is None or start is None:
        return None
    place = {"seq": here.seq, "hash": here.hash, "prev": start.hash}
    if key is None and _is_keyed(log):
        return {**place, "holds": None, "problem": "written with a key; start with `--key-file` to check"}
    last = link_of(before) if before else None
    [(_, problem)] = follow([line], start if last is None else last, key)
    return {**place, "holds": problem is None, "problem": problem or ""}


def _is_keyed(log: str) -> bool:
    """Whether the log's hashes can be checked only with its key."""
    head = read_head(AuditFile(log).head_path)
    return head is not None and head.keyed
