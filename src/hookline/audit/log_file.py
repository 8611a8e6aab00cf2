"""A chained log on disk: appended to by any number of processes, rotated, repaired after a kill, verified.

Processes take turns by a lock on the head file. A process that is killed while it writes leaves a torn last line at
most, which nobody was told is written; the next one to write cuts it off.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from hookline.audit.chain import Break, Link, follow, link_before, link_of, linked
from hookline.audit.checkpoint import Head, key_problem, read_head, write_head
from hookline.errors import AuditError
from hookline.files import locked, read_at

log = logging.getLogger("hookline.audit")
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_TAIL_BYTES = 1 << 16
MOST_LINE = 16 << 20
"""A longer line is no record of ours, and is read in parts."""
MOST_BREAKS = 1_000


class AuditFile:
    """One chained log; `append` may be called by any number of processes and threads.

    Beyond `max_bytes` the file is renamed to `NAME.1`, `NAME.2`, … (the oldest has the lowest number) and a new one
    begun; `keep` says how many of those stay.
    """

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

    # -- writing -------------------------------------------------------------------------------------------------

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
        with _opened(self.path) as fd:
            head, last = self._stand(head_fd, fd)
            full = self._max_bytes is not None and os.fstat(fd).st_size >= self._max_bytes
            if not full:
                return self._write(head_fd, fd, head.at(last), records, fsync=fsync)
        head = self._rotate(head_fd, head.at(last))
        with _opened(self.path) as fd:
            return self._write(head_fd, fd, head, records, fsync=fsync)

    def _write(self, head_fd: int, fd: int, head: Head, records: Iterable[Mapping[str, Any]], *, fsync: bool) -> Link:
        last, lines = head.last, []
        for body in records:
            line, last = linked(body, last, self._key)
            lines.append(line)
        new = os.fstat(fd).st_size == 0
        _write_all(fd, b"".join(lines))
        if fsync:
            os.fsync(fd)
            if new:
                _sync_folder(self.path.parent)
        write_head(head_fd, head.at(last), self._key)
        self._known = (_identity(fd), last)
        return last

    def _stand(self, head_fd: int, fd: int) -> tuple[Head, Link]:
        """The head, and where the chain really stands: a process may have been killed before it could say so."""
        head = read_head(head_fd)
        if head is None:
            return self._new_head(head_fd, fd)
        problem = key_problem(head, self._key)
        if problem is not None:
            raise AuditError(f"{self.head_path}: {problem}")
        if self._known == (_identity(fd), head.last):
            return head, head.last
        return head, self._last_link(fd) or self._before(head)

    def _new_head(self, head_fd: int, fd: int) -> tuple[Head, Link]:
        """A first head; for a log that has lost its own, one that says so."""
        last = self._last_link(fd) or self._before(Head())
        head = Head().at(last)
        if last.seq:
            log.warning("%s: lost or damaged; lines cut off before now cannot be told", self.head_path)
            head = Head(lost_at=last.seq).at(last).since(self._first_base())
        write_head(head_fd, head, self._key)
        return head, last

    def _first_base(self) -> Link:
        oldest = next(iter([*self.rotated(), self.path]))
        with oldest.open("rb") as file:
            return link_before(file.readline(MOST_LINE)) or Link()

    def _last_link(self, fd: int) -> Link | None:
        """The link of the last whole line; a torn end is cut off first. `None` if there is no line."""
        size = os.fstat(fd).st_size
        line, torn = last_line(fd, size)
        if torn:
            log.warning("%s: cut off a torn last line of %d bytes", self.path, torn)
            os.ftruncate(fd, size - torn)
        if not line:
            return None
        link = link_of(line)
        if link is None:
            raise AuditError(f"{self.path}: its last line is no audit record; run `hookline audit verify {self.path}`")
        return link

    def _before(self, head: Head) -> Link:
        """Where the chain stands before the first line of a new file."""
        older = self.rotated()
        return _last_link_in(older[-1]) if older else head.last

    def rotated(self) -> list[Path]:
        """Older files of this log, oldest first."""
        name = re.compile(re.escape(self.path.name) + r"\.([0-9]+)")
        found = [(name.fullmatch(path.name), path) for path in self.path.parent.iterdir()]
        return [path for _, path in sorted((int(match.group(1)), path) for match, path in found if match)]

    def _rotate(self, head_fd: int, head: Head) -> Head:
        """Put the full file aside; the head knows where it ends before anything is deleted."""
        older = self.rotated()
        number = int(older[-1].suffix[1:]) + 1 if older else 1
        write_head(head_fd, head, self._key)
        self.path.rename(self.path.with_name(f"{self.path.name}.{number}"))
        if self._keep is None:
            return head
        files = self.rotated()
        for path in files[: max(len(files) - self._keep, 0)]:
            head = head.since(_last_link_in(path))
            write_head(head_fd, head, self._key)
            path.unlink()
        return head

    # -- verifying -----------------------------------------------------------------------------------------------

    def verify(self) -> list[Break]:
        """Follow the chain through all files; an empty list means that nothing was changed, removed or re-ordered.

        Writers go on meanwhile: what is verified is the log as it was when this began.
        """
        try:
            with contextlib.ExitStack() as stack:
                head, files = self._picture(stack)
                return _verified(self, head, files, self._key)
        except OSError as problem:
            raise AuditError(f"{problem.filename or self.path}: {problem.strerror}") from None

    def _picture(self, stack: contextlib.ExitStack) -> tuple[Head | None, list[tuple[Path, BinaryIO, int]]]:
        """The head, and all files opened, with their sizes; taken while nobody writes."""
        may_lock = os.access(self.head_path, os.R_OK | os.W_OK)  # an auditor may have leave to read only
        lock: contextlib.AbstractContextManager[Any] = locked(self.head_path) if may_lock else contextlib.nullcontext()
        with lock:
            files: list[tuple[Path, BinaryIO, int]] = []
            for path in [*self.rotated(), self.path]:
                if path.exists():
                    file = stack.enter_context(path.open("rb"))
                    files.append((path, file, os.fstat(file.fileno()).st_size))
            return read_head(self.head_path), files


def _verified(
    log_file: AuditFile, head: Head | None, files: list[tuple[Path, BinaryIO, int]], key: bytes | None
) -> list[Break]:
    if head is None:
        why = "the head file is missing or damaged: it cannot be told whether lines were cut off"
        return [Break(str(log_file.head_path), 1, why), *_followed(files, None, key)[0]]
    problem = key_problem(head, key)
    if problem is not None:
        return [Break(str(log_file.head_path), 1, problem)]
    breaks, last, end = _followed(files, head, key)
    if head.lost_at is not None:
        why = f"the head file was lost at record {head.lost_at}: it cannot be told whether lines before it were cut off"
        breaks.insert(0, Break(str(log_file.head_path), 1, why))
    if last.seq < head.seq:
        cut = f"record {head.seq} was" if head.seq == last.seq + 1 else f"records {last.seq + 1} to {head.seq} were"
        breaks.append(Break(str(log_file.path), end + 1, f"{cut} cut off"))
    elif last.seq == head.seq and last.hash not in (head.hash, ""):
        breaks.append(Break(str(log_file.path), end, f"record {last.seq} is not the one that was written last"))
    return breaks


def _followed(
    files: list[tuple[Path, BinaryIO, int]], head: Head | None, key: bytes | None
) -> tuple[list[Break], Link, int]:
    """The breaks, where the chain ends, and how many lines the last file has."""
    breaks: list[Break] = []
    last = head.base if head is not None else None
    number = 0
    for path, file, size in files:
        if head is not None and _is_pruned(file, head):
            continue
        last, number, torn = _follow_file(path, file, size, (last, key), breaks)
        if torn and (file is not files[-1][1] or head is None or last.seq < head.seq):
            breaks.append(Break(str(path), number + 1, "the line is torn: it does not end"))
    return breaks[:MOST_BREAKS], last or Link(), number


def _follow_file(
    path: Path, file: BinaryIO, size: int, start: tuple[Link | None, bytes | None], breaks: list[Break]
) -> tuple[Link, int, bool]:
    """Follow one file; a torn end is told apart, since a writer that was killed leaves one that nobody relied on."""
    last, key = start
    if last is None:
        last = link_before(file.readline(MOST_LINE)) or Link()
        file.seek(0)
    number = 0
    for number, (link, problem) in enumerate(follow(lines_of(file, size), last, key), 1):
        if problem is not None and file.tell() >= size and not _ends(file):
            return link, number - 1, True
        last = link
        if problem is not None and len(breaks) < MOST_BREAKS:
            breaks.append(Break(str(path), number, problem))
    return last, number, False


def _ends(file: BinaryIO) -> bool:
    """Whether what was read last is a whole line."""
    file.seek(-1, os.SEEK_CUR)
    return file.read(1) == b"\n"


def _is_pruned(file: BinaryIO, head: Head) -> bool:
    """Whether a file was to be deleted, and only a kill left it there."""
    first = link_before(file.readline(MOST_LINE))
    file.seek(0)
    return first is not None and first.seq < head.base_seq


def lines_of(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The lines in the first `size` bytes; of one that is too long to be a record, only its parts."""
    left = size
    while left > 0 and (line := file.readline(min(MOST_LINE, left))):
        left -= len(line)
        yield line


# -- at the level of bytes -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = os.open(path, _APPEND, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


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


def _last_link_in(path: Path) -> Link:
    with path.open("rb") as file:
        line, _ = last_line(file.fileno(), path.stat().st_size)
    link = link_of(line)
    if link is None:
        raise AuditError(f"{path}: its last line is no audit record; run `hookline audit verify` on the log")
    return link


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
