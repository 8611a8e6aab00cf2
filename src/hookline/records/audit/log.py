"""The audit log: one line per verdict, chained, shared by processes, honest about failing.

On the agent's path a verdict is only copied into a queue; a thread redacts, chains and writes. `sync` says how sure a
line is before `fire` returns: `batch` (written within moments), `line` (written), `fsync` (on the disk).
"""

from __future__ import annotations

import atexit
import contextlib
import getpass
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from hookline.core.engine import Notice, Verdict
from hookline.core.wire.json_text import read_object
from hookline.errors import AuditError
from hookline.events import CATALOG
from hookline.guards.detect import redact as redact_secrets
from hookline.records.audit.chain import AnchorSpec, lines_of
from hookline.records.audit.entry import IDENTITIES, Redactor, kept, record
from hookline.records.audit.log_file import AuditFile
from hookline.replies import Reply, stop

if TYPE_CHECKING:
    from hookline.records.audit.checkpoint import Checkpoints

log: logging.Logger = logging.getLogger("hookline.audit")
Sync = Literal["batch", "line", "fsync"]
OnError = Literal["stop", "warn"]
_BATCH_SECONDS = 0.05
_RETRY_SECONDS = 1.0
_FLUSH_SECONDS = 10.0
_CLOSE_SECONDS = 30.0
_BATCH = 500
_MOST_WAITING = 20_000
_MOST_UNWRITTEN = 10_000

#: what belongs in the log even if no hook asks for it; SessionStart and SessionEnd the Claude CLI tells no host
WATCHED = tuple(name for name, spec in CATALOG.items() if spec.audited)

_Entry = tuple[Verdict, dict[str, Any]]


class AuditLog:
    """An observer that writes every verdict: `hooks.observe(AuditLog("audit.jsonl"), inline=True)`.

    When a line cannot be written, `on_error="stop"` blocks and ends the agent's turn at the next verdict until it can;
    `warn` says so and goes on. Either way what could not be written is kept, up to 10,000 lines, and written once that
    is possible; beyond that a line says how many are missing. `flush()` returns when everything so far is written.

    Secrets are taken out (`hookline.guards.detect`); pass `redact=` for a way of your own, `redact=str` for none. With
    a `key` the chain cannot be made again without it. An `anchor` tells a log that was rolled back with its head: a
    file elsewhere, or a function that is told `(seq, hash)`; a log with a key has one in the user's state folder unless
    it is `False`. With `identities` each line has hashes of what was judged and of what was let through. `labels` gives
    fields that every line has besides. `checkpoints` signs the log for third parties, at the end of each session and
    after every so many records: a number, or `Checkpoints` with a key and a name of your own. Closing the set of hooks,
    or ending the program, writes what waits.
    """

    events = WATCHED
    verdicts_only = True
    always_inline = True  # told later, it could neither stop the agent nor be sure to hear of everything

    def __init__(
        self,
        path: str | Path,
        *,
        sync: Sync = "batch",
        on_error: OnError = "stop",
        user: str | None = None,
        redact: Redactor = redact_secrets,
        key: bytes | None = None,
        max_bytes: int | None = None,
        keep: int | None = None,
        anchor: AnchorSpec = None,
        identities: bool = False,
        labels: Callable[[], Mapping[str, Any]] = dict,
        checkpoints: Checkpoints | int | None = None,
    ) -> None:
        for name, value, known in (("sync", sync, get_args(Sync)), ("on_error", on_error, get_args(OnError))):
            if value not in known:
                raise AuditError(f"{name} must be {' or '.join(f'`{word}`' for word in known)}, got `{value}`")
        self.file: AuditFile = AuditFile(path, key=key, max_bytes=max_bytes, keep=keep, anchor=anchor)
        self.error: AuditError | None = None
        if isinstance(checkpoints, int):
            from hookline.records.audit.checkpoint import Checkpoints  # not at the start of every command hook

            checkpoints = Checkpoints(path, every=checkpoints, anchor=self.file.anchor)
        self.checkpoints: Checkpoints | None = checkpoints
        self.file.before_deletion = self._checkpoint
        self._sync = sync
        self._on_error = on_error
        self._user = _user() if user is None else user
        self._redact = redact
        self._with_identities = identities
        self._labels = labels
        self._tried = False
        self._ending = False
        self._forget()
        _logs.add(self)

    def _forget(self) -> None:
        """Start with nothing in hand; in a forked process what waits is the parent's to write."""
        self._unwritten: list[dict[str, Any]] = []
        self._missing = 0
        self._writing = threading.Lock()
        self._finalizer: Any = None
        self._changed = threading.Condition()
        self._waiting: list[_Entry] = []  # on their way to the thread, which starts with the first of them
        self._asked = self._done = 0  # how often it was asked to write everything, and had when it did that
        self._closing = False
        self._thread: threading.Thread | None = None

    def __call__(self, notice: Notice) -> Reply | None:
        if not isinstance(notice, Verdict):
            return None
        if not self._tried:
            self._tried = True
            self._write([])  # find out at the first verdict, not at the second, whether the log can be written at all
        reply = self._objection()
        verdict = notice if reply is None else msgspec.structs.replace(notice, reply=notice.reply | reply)
        names = IDENTITIES if self._with_identities else ()
        entry = (verdict, kept(verdict) | {name: getattr(verdict, name) for name in names} | dict(self._labels()))
        if self._sync == "batch" and not self._ending:
            self._put(entry)
            return reply
        self._write([entry])
        return self._objection()

    def _put(self, entry: _Entry) -> None:
        with self._changed:
            self._waiting.append(entry)
            if len(self._waiting) == 1:
                self._changed.notify_all()
            starts = self._thread is None
            if starts:
                self._thread = threading.Thread(target=self._run, name="hookline-audit", daemon=True)
                self._thread.start()
        if starts:  # what waits is written before the process ends, also where `multiprocessing` ends it
            atexit.register(self._close_at_exit)
            util: Any = sys.modules.get("multiprocessing.util")
            if util is not None:
                self._finalizer = util.Finalize(None, self._close_at_exit, exitpriority=100)
        if len(self._waiting) > _MOST_WAITING:
            self._hurry(_FLUSH_SECONDS)  # the disk is slower than the agent: it has to wait

    def _hurry(self, timeout: float) -> bool:
        """Wait until the thread has tried to write everything so far; `False` if that took too long."""
        with self._changed:
            self._asked = wanted = self._asked + 1
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._done >= wanted or self._thread is None, timeout)

    def _run(self) -> None:
        """Write in batches until the log is closed; what could not be written is tried again."""

        def is_hurried() -> bool:
            return self._closing or self._asked > self._done

        while True:
            with self._changed:
                again = _RETRY_SECONDS if self._unwritten else None
                if self._changed.wait_for(lambda: self._waiting or is_hurried(), again):
                    self._changed.wait_for(is_hurried, _BATCH_SECONDS)
                entries, self._waiting, asked = self._waiting, [], self._asked
            for start in range(0, len(entries) or bool(self._unwritten), _BATCH):
                self._write(entries[start : start + _BATCH])
            with self._changed:
                self._done = asked
                self._changed.notify_all()
                if self._closing and not self._waiting:
                    self._thread, self._closing = None, False
                    return

    def _objection(self) -> Reply | None:
        if self.error is None or self._on_error == "warn":
            return None
        return stop(f"the audit log cannot be written, so the agent must not go on: {self.error}")

    def _write(self, entries: list[_Entry]) -> None:
        with self._writing:
            self._unwritten += [self._record(*entry) for entry in entries]
            records = self._all()
            try:
                last = self.file.append(records, fsync=self._sync == "fsync").seq
            except AuditError as problem:
                self._failed(problem)
                if entries and self._sync != "batch" and (reply := self._objection()):
                    # `fire` waits for the line, and is blocked because this one could not be written: record that
                    verdict, said = entries[-1]
                    stopped = msgspec.structs.replace(verdict, reply=verdict.reply | reply)
                    self._unwritten[-1] = self._record(stopped, said)
                return
            ended = any(entry[0].event.event_name == "SessionEnd" for entry in entries)
            if ended or (self.checkpoints is not None and self.checkpoints.is_due(last - len(records), last)):
                self._checkpoint()
            self._unwritten, self._missing = [], 0
            if self.error is not None:
                log.warning("%s: the audit log is written again", self.file.path)
            self.error = None

    def _checkpoint(self) -> None:
        """Sign the log as it is. It can be done later as well, so a failure stops no one; it is told each time."""
        if self.checkpoints is not None:
            try:
                self.checkpoints.update()
            except AuditError as problem:
                log.warning("%s", problem)

    def _all(self) -> list[dict[str, Any]]:
        """What is to be written, and how much cannot be any more."""
        if not self._missing:
            return self._unwritten
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        gap = {"time": now, "user": self._user, "event": "AuditGap", "missing": self._missing, **self._labels()}
        return [gap, *self._unwritten]

    def _failed(self, problem: AuditError) -> None:
        if self.error is None:
            log.error("%s", problem)
        self.error = problem
        if (surplus := len(self._unwritten) - _MOST_UNWRITTEN) > 0:
            self._missing += surplus
            del self._unwritten[:surplus]
            log.error("%s: %d verdicts are lost so far", self.file.path, self._missing)

    def _record(self, verdict: Verdict, said: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return record(verdict, said, user=self._user, redact=self._redact)
        except Exception as problem:
            log.exception("%s: a verdict is recorded without what it was about", self.file.path)
            return {
                "time": verdict.event.timestamp.isoformat(timespec="milliseconds"),
                "event": verdict.event.event_name,
                "decision": str(verdict.decision),
                "blocked": verdict.blocked,
                "problem": f"the rest could not be recorded: {type(problem).__name__}",
                **self._labels(),
            }

    def flush(self, timeout: float = _FLUSH_SECONDS) -> bool:
        """Wait until everything so far is written; `False` if it could not be, or took too long."""
        if self._sync == "batch" and self._thread is not None:
            return self._hurry(timeout) and self.error is None
        if self._unwritten:
            self._write([])
        return self.error is None

    def close(self) -> None:
        """Write what waits and end the thread; raises `AuditError` if it cannot and the log is one that must be kept.

        A verdict that comes later starts it again.
        """
        written = self.flush(_CLOSE_SECONDS)
        with self._changed:
            thread, self._closing = self._thread, self._thread is not None
            self._changed.notify_all()
        if thread is not None:
            thread.join(_CLOSE_SECONDS)
        atexit.unregister(self._close_at_exit)
        if self._finalizer is not None:
            self._finalizer.cancel()
            self._finalizer = None
        if written:
            return
        problem = self.error or AuditError(f"{self.file.path}: the audit log could not be written in time")
        if self._on_error == "stop":
            raise problem
        log.error("%s (%d verdicts were not recorded)", problem, len(self._unwritten) + self._missing)

    def _close_at_exit(self) -> None:
        self._ending = True  # no thread from now on
        with contextlib.suppress(AuditError):  # it was logged, and there is no agent left to stop
            self.close()


_logs: weakref.WeakSet[AuditLog] = weakref.WeakSet()


def _forked() -> None:
    for one in list(_logs):
        one._forget()  # noqa: SLF001 - part of the class, which a process can have only one hook for


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _user() -> str:
    with contextlib.suppress(OSError, KeyError, ImportError):  # no such entry, or a system without users
        return getpass.getuser()
    return str(os.getuid()) if hasattr(os, "getuid") else ""


def read(path: str | Path) -> Iterator[Mapping[str, Any]]:
    """The records of one file, oldest first; a line that cannot be read is passed over with a warning."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(lines_of(file, sys.maxsize), 1):
            if (found := read_object(line)) is not None:
                yield found
            else:
                log.warning("%s:%d: not a record; run `hookline audit verify`", path, number)
