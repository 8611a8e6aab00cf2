"""A chained log on disk: appended to by any number of processes, rotated, repaired after a kill, verified.

Processes take turns by a lock on the head file. A process that is killed while it writes leaves a torn last line at
most, never acknowledged; the next one to write cuts it off. Where the chain stands is what the head says,
or the anchor if that knows more: nothing is added to a file that ends before that. It is put aside as it is, and a new
one begins with a record of the break.
"""

import contextlib
import itertools
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hookline.core.files import locked, private, read_at
from hookline.errors import AuditError
from hookline.records.audit import chain
from hookline.records.audit.chain import Anchor, AnchorSpec, Break, Head, Link

log: logging.Logger = logging.getLogger("hookline.audit")
_TAIL_BYTES = 1 << 16


class AuditFile:
    """One chained log; `append` may be called by any number of processes and threads.

    Beyond `max_bytes` the file is renamed to `NAME.1`, `NAME.2`, … (the oldest has the lowest number) and a new one
    begun; `keep` says how many of those stay. `anchor` is where the last record is remembered besides: a file, a
    function that is told `(seq, hash)`, `False` for nowhere; a log with a key has one in the user's state folder.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        key: bytes | None = None,
        max_bytes: int | None = None,
        keep: int | None = None,
        anchor: AnchorSpec = None,
    ) -> None:
        self.path: Path = Path(path)
        self.anchor: Anchor | None = chain.anchor_for(anchor, self.path, key)
        self._key = key
        self._max_bytes = max_bytes
        self._keep = keep
        self._known: tuple[tuple[int, int, int], Link] | None = None
        self._warned = False
        self.before_deletion: Callable[[], object] = lambda: None

    @property
    def head_path(self) -> Path:
        """The file that writers lock."""
        return self.path.with_name(self.path.name + ".head")

    def append(self, records: Iterable[Mapping[str, Any]], *, fsync: bool = False) -> Link:
        """Chain and write records; all of them are in the file when this returns, on the disk with `fsync`."""
        try:
            with locked(self.head_path) as head_fd:
                return self._append(head_fd, records, fsync=fsync)
        except OSError as problem:
            raise AuditError(f"{self.path}: cannot write the audit log: {problem.strerror or problem}") from None
        except AuditError:
            raise
        except Exception as problem:  # values that are no JSON fail in many ways; none may go unnoticed
            raise AuditError(f"{self.path}: cannot write a record: {problem}") from problem

    def _append(self, head_fd: int, records: Iterable[Mapping[str, Any]], *, fsync: bool) -> Link:
        with open(self.path, "a+b", buffering=0, opener=private) as file:
            fd = file.fileno()
            head, problem = self._chain_state(head_fd, fd)
            full = self._max_bytes is not None and os.fstat(fd).st_size >= self._max_bytes
            if not problem and not full:
                return self._write(head_fd, fd, head, records, fsync=fsync)
        if problem:
            log.error("%s: %s; it is put aside, and a new file begins with a record of that", self.path, problem)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            found = {"time": now, "event": chain.BREAK, "problem": problem, "after": head.seq}
            records = [found, *records]
            self._put_aside()
        else:
            head = self._rotate(head_fd, head)
        with open(self.path, "a+b", buffering=0, opener=private) as file:
            return self._write(head_fd, file.fileno(), head, records, fsync=fsync)

    def _write(self, head_fd: int, fd: int, head: Head, records: Iterable[Mapping[str, Any]], *, fsync: bool) -> Link:
        last, lines = head.last, []
        for body in records:
            line, last = chain.chain_line(body, last, self._key)
            lines.append(line)
        new = os.fstat(fd).st_size == 0
        _write_all(fd, b"".join(lines))
        if fsync:
            os.fsync(fd)
            if new:
                _sync_folder(self.path.parent)
        head.at(last).write(head_fd, self._key)
        self._known = (_identity(fd), last)
        if lines:
            self._remember(last)
        return last

    def _remember(self, last: Link) -> None:
        """Tell the anchor; one that was not asked for does not keep the log from being written."""
        if self.anchor is None:
            return
        try:
            self.anchor.write(last, self._key)
        except AuditError as problem:
            if self.anchor.required:
                raise
            if not self._warned:
                log.warning("%s; a log that is rolled back together with its head will not be found out", problem)
            self._warned = True

    def _chain_state(self, head_fd: int, fd: int) -> tuple[Head, str]:
        """The head where the chain goes on, and what is wrong with the file if it does not end there."""
        head = chain.read_head(head_fd)
        wrong_key = None if head is None else head.key_problem(self._key)
        if wrong_key is not None:
            raise AuditError(f"{self.head_path}: {wrong_key}")
        if head is not None and self._known == (_identity(fd), head.last):
            return head, ""
        line, torn = last_line(fd, os.fstat(fd).st_size)
        if head is None:
            head = self._new_head(head_fd, line)
            last, problem = head.last, ""
        else:
            last, problem = self._compared(head, fd, line)
        if not problem:
            last, problem = self._with_anchor(head, last, fd)
        if torn and not problem:
            log.warning("%s: cut off a torn last line of %d bytes", self.path, torn)
            os.ftruncate(fd, os.fstat(fd).st_size - torn)
        return head.at(last), problem

    def _compared(self, head: Head, fd: int, line: bytes) -> tuple[Link, str]:
        """The file against its head; lines after the head's count if they follow it: a killed process wrote them."""
        if not line:
            older = self.rotated()  # it goes on from the newest one put aside, or from what was deleted on purpose
            last = chain.link_of(last_line_in(older[-1])) if older else head.base
            return head.last, _difference(last, head.last)
        if (last := chain.link_of(line)) is None:
            return head.last, f"the last line is not a record; record {head.seq} was expected"
        if last.seq <= head.seq:
            return head.last, _difference(last, head.last)
        links = list(chain.follow(_lines_after(fd, head.seq), head.last, self._key))
        if not links or any(problem for _, problem in links) or links[-1][0] != last:
            return head.last, f"lines after record {head.seq} do not follow it"
        return last, ""

    def _new_head(self, head_fd: int, line: bytes) -> Head:
        """A first head; for a log that has lost its own, one that says so."""
        older = self.rotated()
        last = chain.link_of(line or last_line_in(older[-1])) if line or older else Link()
        if last is None:
            why = "its last line is not an audit record, and it has no head; name another file"
            raise AuditError(f"{self.path}: {why}")
        head = Head().at(last)
        if last.seq:
            log.warning("%s: lost or damaged; lines cut off before now cannot be told", self.head_path)
            head = Head(lost_at=last.seq).at(last).since(_base_of(next(iter([*older, self.path]))))
        head.write(head_fd, self._key)
        return head

    def _with_anchor(self, head: Head, last: Link, fd: int) -> tuple[Link, str]:
        """Where the chain stands if the anchor knows of nothing else."""
        try:
            mark = self.anchor.read(self._key) if self.anchor is not None else None
        except AuditError as problem:
            return last, str(problem)
        if mark is None or mark == last or mark.seq <= head.base_seq:
            return last, ""
        if mark.seq > last.seq:
            return mark, f"{_difference(last, mark)}, as the anchor knows"
        known = _link_at(mark.seq, fd, self.rotated()) == mark
        return last, "" if known else f"record {mark.seq} is not the one that the anchor knows"

    def rotated(self) -> list[Path]:
        """Older files of this log, oldest first."""
        name = re.compile(re.escape(self.path.name) + r"\.([0-9]+)")
        found = [(name.fullmatch(path.name), path) for path in self.path.parent.iterdir()]
        return [path for _, path in sorted((int(match.group(1)), path) for match, path in found if match)]

    def _put_aside(self) -> None:
        """Rename the file, as it is, to the next number; an empty one is simply gone on with."""
        if self.path.exists() and self.path.stat().st_size:
            older = self.rotated()
            number = int(older[-1].suffix[1:]) + 1 if older else 1
            self.path.rename(self.path.with_name(f"{self.path.name}.{number}"))

    def _rotate(self, head_fd: int, head: Head) -> Head:
        """Put the full file aside; the head knows where it ends before anything is deleted."""
        head.write(head_fd, self._key)
        self._put_aside()
        if self._keep is None:
            return head
        files = self.rotated()
        if surplus := max(len(files) - self._keep, 0):
            self.before_deletion()
        for path, following in zip(files[:surplus], [*files[1:], None], strict=False):
            head = head.since(_base_of(following) if following else head.last)
            head.write(head_fd, self._key)
            path.unlink()
        return head

    def verify(self) -> list[Break]:
        """Follow the chain through all files; an empty list means that nothing was changed, removed or re-ordered.

        Writers go on meanwhile: what is verified is the log as it was when this began.
        """
        may_lock = os.access(self.head_path, os.R_OK | os.W_OK)  # an auditor may have leave to read only
        lock: contextlib.AbstractContextManager[Any] = locked(self.head_path) if may_lock else contextlib.nullcontext()
        try:
            with contextlib.ExitStack() as stack:
                with lock:
                    paths = [path for path in (*self.rotated(), self.path) if path.exists()]
                    opened = [(path, stack.enter_context(path.open("rb"))) for path in paths]
                    files = [(path, file, os.fstat(file.fileno()).st_size) for path, file in opened]
                    head = chain.read_head(self.head_path)
                return chain.verified(self.path, self.head_path, head, files, key=self._key, anchor=self.anchor)
        except OSError as problem:
            raise AuditError(f"{problem.filename or self.path}: {problem.strerror}") from None


def last_line(fd: int, size: int) -> tuple[bytes, int]:
    """The last whole line, and how many bytes of a torn one follow it."""
    length = _TAIL_BYTES
    while True:
        tail = read_at(fd, min(length, size), max(size - length, 0))
        end = tail.rfind(b"\n")
        start = tail.rfind(b"\n", 0, max(end, 0))
        if start >= 0 or length >= size:
            return tail[start + 1 : end + 1], len(tail) - end - 1
        length *= 4


def last_line_in(path: Path) -> bytes:
    """The last whole line of a file."""
    with path.open("rb") as file:
        return last_line(file.fileno(), path.stat().st_size)[0]


def _base_of(path: Path) -> Link:
    with path.open("rb") as file:
        return chain.link_before(file.readline(chain.MOST_LINE)) or Link()


def _lines_after(fd: int, seq: int) -> Iterator[bytes]:
    """The whole lines from the first one that says it comes after record `seq`; read from the end of the file."""
    end, length = os.fstat(fd).st_size, _TAIL_BYTES
    while True:
        start = max(end - length, 0)
        lines = read_at(fd, end - start, start).splitlines(keepends=True)[1 if start else 0 :]
        first = chain.link_of(lines[0]) if lines else None
        if start == 0 or (first is not None and first.seq <= seq):
            break
        length *= 4
    whole = (line for line in lines if line.endswith(b"\n"))
    return itertools.dropwhile(lambda line: (link := chain.link_of(line)) is not None and link.seq <= seq, whole)


def _link_at(seq: int, fd: int, older: list[Path]) -> Link | None:
    found = next(map(chain.link_of, _lines_after(fd, seq - 1)), None)
    for path in reversed(older):
        if found is not None and found.seq <= seq:
            break
        with path.open("rb") as file:
            found = next(map(chain.link_of, _lines_after(file.fileno(), seq - 1)), None)
    return found


def _difference(found: Link | None, expected: Link) -> str:
    """What is missing of a log that ends with one record and should end with another; nothing if it is the same."""
    if found == expected:
        return ""
    if found is None:
        return f"it does not end with a record; record {expected.seq} was expected"
    if found.seq == expected.seq:
        return f"record {found.seq} is not the one that was written last"
    if found.seq > expected.seq:
        return f"it goes on after record {expected.seq}, which was the last"
    return f"{chain.records(found.seq + 1, expected.seq, 'is', 'are')} gone from its end"


def _identity(fd: int) -> tuple[int, int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino, status.st_size


def append_durably(path: Path, data: bytes) -> None:
    """All of it is at the end of a file, on the disk, when this returns; or nothing."""
    with open(path, "ab", buffering=0, opener=private) as file:
        _write_all(file.fileno(), data)
        os.fsync(file.fileno())


def _write_all(fd: int, data: bytes) -> None:
    """All or nothing: what could only be written in part is taken back."""
    before = os.fstat(fd).st_size
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        with contextlib.suppress(OSError):  # else the next writer cuts it off
            os.ftruncate(fd, before)
        raise


def _sync_folder(folder: Path) -> None:
    """A new file's name must be on the disk too."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
