"""A line of an audit log as the console needs it: typed where it is well-formed, put right where it is not."""

import contextlib
from datetime import UTC, datetime
from functools import lru_cache
from math import log2
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.engine.verdict import WORDS, decision_word
from hookline.core.files import read_at
from hookline.core.wire.json_text import read_as, read_object
from hookline.records.telemetry import quantile

MOST_ABOUT = 240
MOST_NAME = 200
_MOST_RECENT, _MOST_LINES = 200_000, 8
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)

VERDICTS = (*(word.lower() for word in reversed(WORDS)), "gap")
"""What a record came to, mildest first; the index stores the position in this table."""
CODES = {word: code for code, word in enumerate(VERDICTS)}
SLOTS_PER_DOUBLING = 6  # how finely run times are counted: percentiles are exact to about 6 %
FAILED = frozenset({"failed", "timeout", "cancelled"})


@lru_cache(1_000)
def _code(decision: str, stop: bool, keep_going: bool, rewritten: bool, replaced: bool) -> int:  # noqa: FBT001 - a key
    word = decision_word(decision, stop=stop, keep_going=keep_going, rewritten=rewritten, replaced=replaced)
    return CODES[word.lower()]


class HookRun(msgspec.Struct, gc=False):
    """One hook's part in a verdict."""

    hook: str = ""
    status: str = "ok"
    ms: float = 0.0
    decision: str = "pass"


class EventRecord(msgspec.Struct, gc=False):
    """What the index keeps of a line; everything else is read from the log on demand."""

    event: str
    seq: int = 0
    time: datetime | None = None
    run: str = ""
    user: str = ""
    cwd: str = ""
    subject: str | None = None
    tool: str | None = None
    agent: str | None = None
    agent_type: str | None = None
    tool_use_id: str | None = None
    decision: str = "pass"
    stop: bool | None = None
    keep_going: bool | None = None
    replaced: bool | None = None
    by: str | None = None
    reasons: list[str] = []
    ms: float = 0.0
    hooks: list[HookRun] = []
    input: dict[str, Any] | None = None
    rewritten: msgspec.Raw = msgspec.Raw()
    prompt: str | None = None
    last_assistant_message: str | None = None
    delta: str | None = None
    error: str | None = None
    duration_ms: float | None = None
    missing: int = 0

    @property
    def verdict(self) -> int:
        """The code of what it came to, the strictest word that applies."""
        if self.event == "AuditGap":
            return CODES["gap"]
        said = bool(self.stop), bool(self.keep_going), bool(self.rewritten), bool(self.replaced)
        return _code(self.decision, *said) if self.decision != "pass" or any(said) else 0

    @property
    def failed(self) -> bool:
        return any(run.status in FAILED for run in self.hooks)

    @property
    def about(self) -> str:
        """What it was about, on one short line: the command, the path, the prompt."""
        for value in (self.input or {}).values():
            if value.__class__ is str and value:
                return str(value)[:MOST_ABOUT]
        if text := self.prompt or self.delta or self.last_assistant_message or self.error:
            return text[:MOST_ABOUT]
        if self.event == "AuditGap":
            return f"{self.missing} records are missing here: they could not be written"
        return "" if self.tool else (self.subject or "")[:MOST_ABOUT]

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)[:MOST_ABOUT] if self.reasons else ""


def recent(log: Path, session: str) -> list[str]:
    """What a session did last, by a log, one line each."""
    try:
        with log.open("rb") as file:
            data = read_at(file.fileno(), _MOST_RECENT, max(log.stat().st_size - _MOST_RECENT, 0))
    except OSError:
        return []
    records = map(decode, data.split(b"\n"))  # the first may be part of a line, which is not a record
    rows = [one for one in records if one is not None and one.run == session and (one.tool or one.prompt)]
    return [f"{one.tool or one.event} {one.about} → {VERDICTS[one.verdict]}" for one in rows[-_MOST_LINES:]]


def decode(line: bytes) -> EventRecord | None:
    """The record on a line, or `None` if there is none; a field of the wrong type costs that field, not the line."""
    return read_as(line, EventRecord) or _normalized(line)


def _normalized(line: bytes) -> EventRecord | None:
    if (found := read_object(line)) is None or not isinstance(found.get("event"), str):
        return None
    if isinstance(rows := found.get("hooks"), list):
        found["hooks"] = [_hook_row(row) for row in rows if isinstance(row, dict)]
    kept: dict[str, Any] = {}
    for field in msgspec.structs.fields(EventRecord):
        if field.name in found:
            with contextlib.suppress(msgspec.MsgspecError, ValueError):
                kept[field.name] = msgspec.convert(found[field.name], field.type, strict=False)
    return EventRecord(**kept)


def _hook_row(row: dict[str, Any]) -> dict[str, Any]:
    texts: dict[str, Any] = {name: str(row[name]) for name in ("hook", "status", "decision") if name in row}
    return {**texts, "ms": row["ms"] if isinstance(row.get("ms"), (int, float)) else 0.0}


def milliseconds(moment: datetime | None, before: int, now: int) -> int:
    """A record's time in milliseconds since 1970; an impossible time becomes the one before it."""
    if moment is None:
        return before
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment < _EARLIEST:
        return before
    stamp = int(moment.timestamp() * 1000)
    return stamp if stamp <= now + 86_400_000 else before


def slot(ms: float) -> int:
    """The logarithmic slot a run time is counted in."""
    return int(SLOTS_PER_DOUBLING * log2(ms * 1000 + 1)) if ms > 0 else 0


def slot_ms(slot: int) -> float:
    """The run time in the middle of a slot."""
    return float((2 ** ((slot + 0.5) / SLOTS_PER_DOUBLING) - 1) / 1000)


def percentile(slots: dict[int, int], share: float) -> float:
    """The run time below which this share of the runs lies."""
    return quantile(((slot_ms(number), slots[number]) for number in sorted(slots)), share, sum(slots.values()))
