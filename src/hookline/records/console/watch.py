"""A live view for a terminal of 80 columns and up: events, verdicts, slow hooks. Pure but for the time handed in.

Whatever agents wrote is shown by `hookline.display`, on one line, and counted in the columns that it takes.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime

from hookline.display import one_line
from hookline.records.console.records import FAILED, VERDICTS, EventRecord, percentile, slot

Paint = Callable[[str, str], str]
_MOST_ROWS = 500
_MOST_HOOKS = 1_000
_SLOWEST = 3
_RATE_SECONDS = 10.0
_MOST_TEXT = 400


class WatchScreen:
    """What has been seen, and how it is shown on so many columns and lines."""

    events: int
    denied: int
    asked: int
    failed: int

    def __init__(self, paint: Paint, colour_of: Callable[[str], str]) -> None:
        self._paint = paint
        self._colour_of = colour_of
        self._rows: deque[EventRecord | str] = deque(maxlen=_MOST_ROWS)
        self._times: dict[str, dict[int, int]] = {}
        self._arrivals: deque[tuple[float, int]] = deque()
        self.events = self.denied = self.asked = self.failed = 0

    def add(self, records: Iterable[EventRecord], now: float) -> None:
        """Take what came in."""
        new = list(records)
        self._rows.extend(new)
        self._arrivals.append((now, len(new)))
        self.events += len(new)
        for record in new:
            word = _word(record)
            self.denied += word in ("DENY", "STOP")
            self.asked += word in ("ASK", "DEFER")
            self.failed += record.failed
            self._count(record)

    def note(self, text: str) -> None:
        """Take a line that is not an event, such as one of the service's log."""
        self._rows.append(text)

    def _count(self, record: EventRecord) -> None:
        for run in record.hooks:
            if run.status == "skipped" or (run.hook not in self._times and len(self._times) >= _MOST_HOOKS):
                continue
            times = self._times.setdefault(run.hook, {})
            number = slot(run.ms)
            times[number] = times.get(number, 0) + 1

    # -- lines -----------------------------------------------------------------------------------------------------

    def lines(self, width: int, height: int, now: float, about: str = "") -> list[str]:
        """The whole screen: what is watched, the newest events, the slowest hooks."""
        room = max(height - 4, 1)
        shown = [self._row(row, width) for row in list(self._rows)[-room:]]
        empty = [self._paint("  waiting for events; Ctrl-C ends this", "dim")] if not shown else []
        body = [*shown, *empty]
        return [
            self._head(width, now, about), self._paint("─" * width, "dim"), *body, *[""] * (room - len(body)),
            self._paint("─" * width, "dim"), self._foot(width),
        ]  # fmt: skip

    def _head(self, width: int, now: float, about: str) -> str:
        while self._arrivals and now - self._arrivals[0][0] > _RATE_SECONDS:
            self._arrivals.popleft()
        rate = sum(number for _, number in self._arrivals) / _RATE_SECONDS
        counts = [
            (f"{self.events:,} events", "bold"), (f"{self.denied:,} denied", "red" if self.denied else "dim"),
            (f"{self.asked:,} asked", "yellow" if self.asked else "dim"),
            (f"{self.failed:,} failed", "red" if self.failed else "dim"), (f"{rate:.1f}/s", "dim"),
        ]  # fmt: skip
        plain = "hookline watch  " + "  ".join(text for text, _ in counts)
        painted = self._paint("hookline watch", "bold") + "  " + "  ".join(self._paint(*part) for part in counts)
        room = width - len(plain) - 2
        return painted if room < 8 or not about else f"{painted}  {self._paint(fit(about, room, right=True), 'dim')}"

    def _foot(self, width: int) -> str:
        slow = sorted(((percentile(times, 0.95), name) for name, times in self._times.items()), reverse=True)[:_SLOWEST]
        said = " · ".join(f"{one_line(name, 28)} {_ms(p95)}" for p95, name in slow)
        return fit(f"slowest hooks (p95): {said or 'none yet'}", width)

    def _row(self, row: EventRecord | str, width: int) -> str:
        return self._paint(fit(one_line(row), width), "dim") if isinstance(row, str) else self.line(row, width)

    def line(self, record: EventRecord, width: int | None) -> str:
        """One event on one line: when, what it came to, what it was, what by and why, how long the hooks took."""
        word = _word(record)
        moment = record.time.astimezone() if record.time else None
        stamp = moment.strftime("%H:%M:%S") if isinstance(moment, datetime) else "--:--:--"
        took = f"{_ms(record.ms) if record.hooks else '':>8}"
        left = None if width is None else max(width - len(stamp) - 11 - len(took) - 3, 10)
        text = one_line(_said(record), _MOST_TEXT)
        failed = record.failed and word not in ("DENY", "STOP")
        painted = self._paint(f"{word:<10}", "red" if failed else self._colour_of(word))
        shown = text if left is None else fit(text, left)
        return f"{self._paint(stamp, 'dim')} {painted} {shown} {self._paint(took, 'dim')}"


def _word(record: EventRecord) -> str:
    return VERDICTS[record.verdict].upper()


def _said(record: EventRecord) -> str:
    agent = f"└ {record.agent_type or 'subagent'}: " if record.agent else ""
    what = " ".join(part for part in (record.tool or record.event, record.about) if part)
    what = what if record.event == "PreToolUse" or not record.tool else f"{record.event} {what}"
    failing = next((run.hook for run in record.hooks if run.status in FAILED), "")
    by = f"  ← {record.by}" if record.by else f"  ✗ {failing}" if record.failed else ""
    return f"{agent}{what}{by}{f': {record.reason}' if record.reason else ''}"


def _ms(value: float) -> str:
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def columns(text: str) -> int:
    """How many columns a terminal gives a text."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly so many columns: cut with `…`, or filled with spaces."""
    taken = columns(text)
    if taken <= width:
        return " " * (width - taken) + text if right else text + " " * (width - taken)
    kept, used = [], 0
    for character in text:
        used += columns(character)
        if used > width - 1:
            break
        kept.append(character)
    cut = "".join(kept)
    return cut + "…" + " " * (width - 1 - columns(cut))
