"""Pushes an audit log to a receiver: in order, each record at least once, from a place that survives a restart.

It is a process of its own, beside the agents: the log is its queue, so a receiver that is away holds up nothing and
costs no memory. What was sent is noted once the receiver has taken it; after a kill the last batch may come twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.files import private_folder, state_folder, try_lock, write_atomically
from hookline.core.wire.json_text import read_object
from hookline.errors import AuditError
from hookline.records.audit.anchor import read_head
from hookline.records.audit.chain import Link, link_before, link_of
from hookline.records.audit.log_file import AuditFile
from hookline.records.audit.reader import Cursor, LogReader
from hookline.records.audit.sinks import sink_for

log: logging.Logger = logging.getLogger("hookline.audit")
POLL_SECONDS = 0.5
_LONGEST_WAIT = 60.0
_MOST_LINES = 500
_MOST_BYTES = 256 << 10


class PushState(msgspec.Struct):
    """How far a log was sent to a receiver, and what is in the way, if anything."""

    log: str
    to: str
    cursor: Cursor = Cursor()
    last: Link = Link()
    sent: int = 0
    missing: int = 0
    """Records that were deleted before they could be sent."""
    time: float = 0.0
    problem: str = ""

    @property
    def behind(self) -> int:
        """How many records wait."""
        head = read_head(AuditFile(self.log).head_path)
        return max((head.seq if head else 0) - self.last.seq, 0)

    def summary(self) -> dict[str, Any]:
        """For `service status` and the console."""
        names = ("log", "to", "sent", "missing", "behind", "time", "problem")
        return {name: getattr(self, name) for name in names}


def push_states(state: str | Path | None = None) -> list[PushState]:
    """Every push of this user, as far as it is known here."""
    folder = Path(state or state_folder()) / "audit"
    found = (_read(path) for path in sorted(folder.glob("push-*.json")))
    return [one for one in found if one is not None]


def _read(path: Path) -> PushState | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=PushState)
    except (OSError, msgspec.MsgspecError):
        return None


class Pusher:
    """One log on its way to one receiver."""

    def __init__(self, path: str | Path, to: str, form: str = "") -> None:
        self.path: Path = Path(os.path.realpath(path))
        self._send = sink_for(to, form)
        name = hashlib.sha256(f"{self.path}\0{to}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._file = private_folder(state_folder() / "audit") / f"push-{name}.json"
        self._lock: int | None = None
        known = _read(self._file)
        self.state: PushState = known or PushState(str(self.path), to)
        self._reader = LogReader(self.path)

    def acquire(self) -> None:
        """Be the only process that pushes this log there; `AuditError` if there is one already."""
        self._lock = try_lock(self._file.with_suffix(".lock"))
        if self._lock is None:
            raise AuditError(f"{self.path}: another process pushes it there already")

    def step(self) -> int:
        """Send the next records; how many. Raises `OSError` if the receiver did not take them."""
        batch = self._reader.read(self._place(), most_bytes=_MOST_BYTES, most_lines=_MOST_LINES)
        if not batch.data:
            return 0
        lines = batch.lines
        records = [record for line in lines if (record := read_object(line)) is not None]
        try:
            if records:
                self._send(records)
        except OSError:
            raise
        except Exception as problem:  # a receiver may answer anything; what it took is not known then
            raise OSError(f"{type(problem).__name__}: {problem}") from problem
        first, last = link_before(lines[0]), link_of(lines[-1])
        if first is not None and self.state.last.seq and first.seq > self.state.last.seq:
            self.state.missing += first.seq - self.state.last.seq
            log.warning("%s: %d records were deleted before they could be sent", self.path, self.state.missing)
        self.state.cursor, self.state.last = batch.cursor, last or self.state.last
        self.state.sent += len(records)
        self._note("")
        return len(records)

    def _place(self) -> Cursor:
        """Where to go on; found again by its record where the files are others, else the log's start."""
        cursor = self.state.cursor
        if cursor.identity and self._reader.read(cursor, most_lines=1).gap:
            return self._reader.find(self.state.last) or Cursor()
        return cursor

    def _note(self, problem: str) -> None:
        """Remember how far it got; where that cannot be written, it is known until this process ends."""
        self.state.time, self.state.problem = time.time(), problem
        with contextlib.suppress(OSError):
            write_atomically(self._file, msgspec.json.encode(self.state))

    def until_sent(self) -> int:
        """Send all that is there now; how many. Raises `AuditError` if the receiver does not take it."""
        count = 0
        try:
            while sent := self.step():
                count += sent
        except OSError as problem:
            self._note(str(problem))
            raise AuditError(
                f"{self.state.to}: {problem}; {count} records were sent, {self.state.behind} wait"
            ) from None
        return count

    def follow(self, wait: Callable[[float], bool]) -> None:
        """Send what is written from now on, until `wait(seconds)` says so; a receiver that is away is tried again."""
        delay = POLL_SECONDS
        while True:
            try:
                sent = self.step()
                delay = POLL_SECONDS
            except OSError as problem:
                if not self.state.problem:
                    log.warning("%s: %s; %d records wait", self.state.to, problem, self.state.behind)
                sent, delay = 0, min(delay * 2, _LONGEST_WAIT)
                self._note(str(problem) or type(problem).__name__)
            if not sent and wait(delay):
                return


def sinks_in(raw: Any) -> Iterator[tuple[str, str, str]]:
    """The receivers that a `sink` setting names: log, address, format; `AuditError` if it cannot be understood."""
    for one in raw if isinstance(raw, list) else [raw]:
        said = {"to": one} if isinstance(one, str) else one
        if not isinstance(said, dict) or not all(isinstance(said.get(key, ""), str) for key in ("to", "log", "format")):
            raise AuditError('sink: expected an address, or an object such as {"to": "syslog+tls://siem.example:6514"}')
        if not said.get("to") or set(said) - {"to", "log", "format"}:
            raise AuditError(f"sink: expected `to`, and perhaps `log` and `format`, got {', '.join(said) or 'nothing'}")
        yield said.get("log", ""), said["to"], said.get("format", "")
