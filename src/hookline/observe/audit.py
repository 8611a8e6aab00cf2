"""The audit log: one line per verdict, chained, shared by processes, honest about failing.

On the agent's path a verdict is only put in a queue; a thread redacts, chains and writes. `sync` says how sure a line
is before `fire` returns: `batch` (written within moments), `line` (written), `fsync` (on the disk). Processes take
turns by a lock on the head file, which also remembers where the chain stands, so that a cut-off end is found.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import getpass
import logging
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from hookline.detect import redact as redact_secrets
from hookline.engine import Notice, Verdict
from hookline.errors import AuditError
from hookline.observe.chain import Break, Link, link_of, linked, verify_lines
from hookline.observe.record import Redactor, record
from hookline.replies import Reply, stop

log = logging.getLogger("hookline.audit")
Sync = Literal["batch", "line", "fsync"]
OnError = Literal["stop", "warn"]
_BATCH_SECONDS = 0.05
_TAIL_BYTES = 1 << 20


class Head(msgspec.Struct):
    """What the head file remembers: where the chain stands, and where the oldest kept file begins."""

    seq: int = 0
    hash: str = Link().hash
    base_seq: int = 0
    base_hash: str = Link().hash


class AuditFile:
    """One chained file on disk; `append` may be called by any number of processes."""

    def __init__(
        self, path: str | Path, *, key: bytes | None = None, max_bytes: int | None = None, keep: int | None = None
    ) -> None:
        self.path = Path(path)
        self._key = key
        self._max_bytes = max_bytes
        self._keep = keep
        self._known: tuple[tuple[int, int, int], Link] | None = None

    @property
    def head_path(self) -> Path:
        """The file that is locked while somebody writes."""
        return self.path.with_name(self.path.name + ".head")

    def append(self, records: list[dict[str, Any]], *, fsync: bool = False) -> Link:
        """Chain and write records; all of them are in the file when this returns."""
        try:
            with self._locked() as head_fd:
                return self._append(head_fd, records, fsync=fsync)
        except OSError as problem:
            raise AuditError(f"{self.path}: cannot write the audit log: {problem.strerror or problem}") from None

    def _append(self, head_fd: int, records: list[dict[str, Any]], *, fsync: bool) -> Link:
        self._rotate_if_full(head_fd)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            last = self._last_link(fd, head_fd)
            lines = []
            for body in records:
                line, last = linked(body, last, self._key)
                lines.append(line)
            _write_all(fd, b"".join(lines))
            if fsync:
                os.fsync(fd)
            self._known = (_identity(fd), last)
        finally:
            os.close(fd)
        head = _read_head(head_fd)
        _write_head(head_fd, Head(last.seq, last.hash, head.base_seq, head.base_hash))
        return last

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        fd = os.open(self.head_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield fd
        finally:
            os.close(fd)

    def _last_link(self, fd: int, head_fd: int) -> Link:
        """Where the chain stands; a torn end, which nobody was told is written, is cut off."""
        identity = _identity(fd)
        if self._known is not None and self._known[0] == identity:
            return self._known[1]
        size = identity[2]
        if size == 0:
            return _before(self.path, _read_head(head_fd), self._rotated())
        tail = os.pread(fd, min(size, _TAIL_BYTES), max(size - _TAIL_BYTES, 0))
        end = tail.rfind(b"\n") + 1
        if end < len(tail):
            log.warning("%s: cut off a torn last line of %d bytes", self.path, len(tail) - end)
            os.ftruncate(fd, size - (len(tail) - end))
        lines = tail[:end].splitlines()
        link = link_of(lines[-1]) if lines else None
        if link is None and end:
            raise AuditError(f"{self.path}: its last line is no audit record; run `hookline audit verify {self.path}`")
        return link or _before(self.path, _read_head(head_fd), self._rotated())

    def _rotated(self) -> list[Path]:
        """Older files of this log, oldest first."""
        return sorted(self.path.parent.glob(self.path.name + ".[0-9]*"), key=lambda p: int(p.suffix[1:]))

    def _rotate_if_full(self, head_fd: int) -> None:
        if self._max_bytes is None or not self.path.exists() or self.path.stat().st_size < self._max_bytes:
            return
        older = self._rotated()
        number = int(older[-1].suffix[1:]) + 1 if older else 1
        self.path.rename(self.path.with_name(f"{self.path.name}.{number}"))
        self._known = None
        if self._keep is not None:
            self._prune(head_fd)

    def _prune(self, head_fd: int) -> None:
        surplus = self._rotated()[: -self._keep or None] if self._keep else self._rotated()
        for path in surplus:
            last = _last_link_in(path)
            head = _read_head(head_fd)
            _write_head(head_fd, Head(head.seq, head.hash, last.seq, last.hash))
            path.unlink()

    def verify(self) -> list[Break]:
        """Follow the chain through all files; an empty list means that nothing was changed, removed or re-ordered."""
        head = self._read_only_head()
        breaks: list[Break] = []
        last = Link(head.base_seq, head.base_hash) if head else Link()
        for path in [*self._rotated(), self.path]:
            if not path.exists():
                continue
            with path.open("rb") as lines:
                for found in verify_lines(path.name, lines, last, self._key):
                    if isinstance(found, Break):
                        breaks.append(found)
                        last = Link(last.seq + 1, "")
                    else:
                        last = found
        return breaks + self._cut_off(head, last, broken=bool(breaks))

    def _cut_off(self, head: Head | None, last: Link, *, broken: bool) -> list[Break]:
        if head is None:
            return [
                Break(self.head_path.name, 1, "the head file is missing: it cannot be told whether lines were cut off")
            ]
        if last.seq < head.seq and not broken:
            return [
                Break(self.path.name, last.seq - head.base_seq, f"records {last.seq + 1} to {head.seq} were cut off")
            ]
        return []

    def _read_only_head(self) -> Head | None:
        try:
            return msgspec.json.decode(self.head_path.read_bytes(), type=Head)
        except (OSError, msgspec.DecodeError):
            return None


def _before(path: Path, head: Head, rotated: list[Path]) -> Link:
    """Where the chain stands before the first line of a new file."""
    return _last_link_in(rotated[-1]) if rotated else Link(head.seq, head.hash)


def _last_link_in(path: Path) -> Link:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
        lines = file.read().splitlines()
    return (link_of(lines[-1]) if lines else None) or Link()


def _identity(fd: int) -> tuple[int, int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino, status.st_size


def _write_all(fd: int, data: bytes) -> None:
    """All or nothing: what could only be written in part is taken back."""
    before = os.fstat(fd).st_size
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        os.ftruncate(fd, before)
        raise


def _read_head(fd: int) -> Head:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=Head)
    except msgspec.DecodeError:
        return Head()


def _write_head(fd: int, head: Head) -> None:
    """One small write of constant size, so that a reader never sees half of it."""
    os.pwrite(fd, msgspec.json.encode(head).ljust(512) + b"\n", 0)


class AuditLog:
    """An observer that writes every verdict: `hooks.observe(AuditLog("audit.jsonl"), inline=True)`.

    `on_error="stop"` ends the agent's turn at the next verdict once a line could not be written; `warn` says so and
    goes on. `flush()` returns when everything so far is written.
    """

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
    ) -> None:
        self.file = AuditFile(path, key=key, max_bytes=max_bytes, keep=keep)
        self._sync = sync
        self._on_error = on_error
        self._user = _user() if user is None else user
        self._redact = redact
        self._queue: deque[Verdict] = deque()
        self._wake = threading.Condition()
        self._writing = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self.error: AuditError | None = None

    def __call__(self, notice: Notice) -> Reply | None:
        """Take a verdict; anything else is passed over."""
        if not isinstance(notice, Verdict):
            return None
        if self._sync == "batch":
            self._enqueue(notice)
        else:
            self._write([notice])
        if self.error is not None and self._on_error == "stop":
            return stop(f"the audit log could not be written, so the agent must not go on: {self.error}")
        return None

    def _enqueue(self, verdict: Verdict) -> None:
        self._queue.append(verdict)
        if self._thread is None:
            with self._wake:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="hookline-audit", daemon=True)
                    self._thread.start()
                    atexit.register(self.close)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._writing, timeout=_BATCH_SECONDS)
                done = self._closed
            self._write_queue()
            with self._wake:
                self._writing = 0
                self._wake.notify_all()
            if done and not self._queue:
                return

    def _write_queue(self) -> None:
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), 500))]
            self._write(batch)

    def _write(self, verdicts: list[Verdict]) -> None:
        try:
            records = [record(verdict, user=self._user, redact=self._redact) for verdict in verdicts]
            self.file.append(records, fsync=self._sync == "fsync")
            self.error = None
        except AuditError as problem:
            self.error = problem
            log.error("%s (%d verdicts were not recorded)", problem, len(verdicts))  # noqa: TRY400 - it is no crash

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything so far is written; `False` if it took too long."""
        if self._thread is None:
            return True
        with self._wake:
            self._writing = 1
            self._wake.notify_all()
            return self._wake.wait_for(lambda: not self._writing and not self._queue, timeout)

    def close(self) -> None:
        """Write what waits and end the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(10)
            self._thread = None
        self._closed = False
        atexit.unregister(self.close)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def read(path: str | Path) -> Iterator[Mapping[str, Any]]:
    """The records of one file, oldest first; a line that cannot be read is passed over with a warning."""
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError:
                log.warning("%s:%d: not a record; run `hookline audit verify`", path, number)
