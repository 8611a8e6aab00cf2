"""What the console shows, as values. Pure."""

from __future__ import annotations

from typing import Any

import msgspec


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


class EventRow(msgspec.Struct, frozen=True):
    """One event as a list shows it; times in milliseconds."""

    id: int
    time: int
    event: str
    verdict: str
    tool: str = ""
    session: str = ""
    about: str = ""
    by: str = ""
    reason: str = ""
    ms: float = 0.0
    duration: float | None = None
    failed: bool = False
    agent: str = ""
    agent_type: str = ""
    call: str = ""
    hooks: int = 0
    user: str = ""


class Page(msgspec.Struct, frozen=True):
    """A stretch of events, newest first; `next` continues it, and is empty at the end."""

    rows: list[EventRow]
    next: str = ""


class Facets(msgspec.Struct, frozen=True):
    """How many events match, and how many would for each value of each filter."""

    total: int
    verdict: dict[str, int] = {}
    event: dict[str, int] = {}
    tool: dict[str, int] = {}
    hook: dict[str, int] = {}
    failed: int = 0


class Timeline(msgspec.Struct, frozen=True):
    """Events over time: for each bucket its start and how many of each verdict."""

    width: int
    buckets: list[tuple[int, dict[str, int]]]


class SessionSummary(msgspec.Struct, frozen=True):
    """One session in a list of them."""

    name: str
    first: int
    last: int
    events: int
    tools: int
    denied: int
    asked: int
    failed: int
    title: str = ""
    cwd: str = ""
    user: str = ""


class Sessions(msgspec.Struct, frozen=True):
    """A stretch of sessions, the latest first."""

    rows: list[SessionSummary]
    next: str = ""


class SessionEvents(msgspec.Struct, frozen=True):
    """One session and its events, oldest first; `next` continues them."""

    session: SessionSummary
    rows: list[EventRow]
    next: str = ""


class HookStats(msgspec.Struct, frozen=True):
    """How one hook has done; run times in milliseconds."""

    name: str
    runs: int
    denied: int
    failed: int
    skipped: int
    p50: float
    p95: float
    p99: float
    slowest: list[tuple[float, int]]
    spark: list[int]


class HookSeries(msgspec.Struct, frozen=True):
    """One hook over time, a column per figure."""

    name: str
    time: list[int]
    runs: list[int]
    denied: list[int]
    failed: list[int]
    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]


class ConfiguredHook(msgspec.Struct, frozen=True):
    """A hook that is configured today, whether or not it ever ran."""

    name: str
    events: list[str]
    matcher: str = ""
    source: str = ""


class ToolCoverage(msgspec.Struct, frozen=True):
    """How often a gate's event came up for a tool, and how often some hook looked at it."""

    event: str
    tool: str
    calls: int
    seen: int


class Coverage(msgspec.Struct, frozen=True):
    """What hooks looked at, and which hooks never had anything to look at."""

    tools: list[ToolCoverage]
    never: list[ConfiguredHook]
    configured: int


class LogHealth(msgspec.Struct, frozen=True):
    """One log: its files, what could not be read, and whether its chain holds (`None`: not checked yet)."""

    path: str
    files: list[tuple[str, int]]
    lines: int
    unreadable: int
    keyed: bool
    first: int
    last: int
    free: int
    whole: bool | None = None
    breaks: list[str] = []
    checking: bool = False


class Gap(msgspec.Struct, frozen=True):
    """Records that were never written, and where the log says so."""

    id: int
    time: int
    missing: str


class Health(msgspec.Struct, frozen=True):
    """Whether what the console shows can be believed."""

    logs: list[LogHealth]
    gaps: list[Gap]
    writers: list[tuple[str, int]]
    index_path: str
    index_bytes: int
    events: int
    pushes: list[dict[str, Any]] = []
    """How far logs were sent to receivers, and what waits."""


class Status(msgspec.Struct, frozen=True):
    """How far the index is, and what the whole of it holds."""

    ready: bool
    done: int
    total: int
    events: int
    last_id: int
    first: int = 0
    last: int = 0
