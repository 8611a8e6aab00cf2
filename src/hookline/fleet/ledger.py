"""What the hub knows of every machine: its audit log, mirrored line by line, and where its chain does not hold.

The mirror of a machine is an audit log like any other: `hookline audit verify`, `replay` and the console read it.
A block is written, put on the disk, and only then acknowledged to the stream; one that comes again changes nothing.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from hookline.core.files import locked
from hookline.records.audit.chain import Link, follow, link_of
from hookline.records.audit.checkpoint import Head, write_head
from hookline.records.audit.log_file import last_line
from hookline.records.audit.verification import lines_of

Outcome = Literal["new", "known"]


class ChainProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a machine's chain does not hold."""

    machine: str
    record: int
    problem: str
    found: str

    def __str__(self) -> str:
        return f"{self.machine}: record {self.record}: {self.problem}"


class Mirror:
    """One machine's log at the hub."""

    def __init__(self, folder: Path, machine: str) -> None:
        self.machine = machine
        self.path: Path = folder / f"{machine}.jsonl"
        self.problems_path: Path = folder / f"{machine}.problems.jsonl"
        self._last: Link | None = None

    @property
    def last(self) -> Link:
        """Where the mirrored chain stands."""
        return _end_of(self.path) if self._last is None else self._last

    def take(self, block: bytes) -> tuple[Outcome, list[ChainProblem]]:
        """Write a block's new lines; what does not follow from what is there is a problem, and is kept all the same."""
        if self._last is None:
            self._last = _end_of(self.path, cut=True)
        lines = [line + b"\n" for line in block.split(b"\n") if line]
        fresh = _after(lines, self.last, self.path)
        if not fresh:
            return "known", []
        problems: list[ChainProblem] = []
        last = self.last
        for link, problem in follow(fresh, last):
            if problem is not None:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                problems.append(ChainProblem(machine=self.machine, record=link.seq, problem=problem, found=now))
            last = link
        self._append(fresh, last, problems)
        return "new", problems

    def _append(self, lines: list[bytes], last: Link, problems: list[ChainProblem]) -> None:
        """All on the disk before anybody is told."""
        if problems:
            _append_durably(self.problems_path, b"".join(msgspec.json.encode(one) + b"\n" for one in problems))
        self._last = None  # should writing fail half-way, the torn end is cut off before the next block
        with locked(self.path.with_name(self.path.name + ".head")) as head:
            _append_durably(self.path, b"".join(lines))
            write_head(head, Head().at(last), None)
        self._last = last

    def problems(self) -> list[ChainProblem]:
        """Everything that was ever wrong with this chain."""
        try:
            data = self.problems_path.read_bytes()
        except FileNotFoundError:
            return []
        return [msgspec.json.decode(line, type=ChainProblem) for line in data.splitlines() if line]


class Ledger:
    """The mirrors of all machines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._mirrors: dict[str, Mirror] = {}

    def mirror(self, machine: str) -> Mirror:
        """A machine's log."""
        if machine not in self._mirrors:
            self._mirrors[machine] = Mirror(self.folder, machine)
        return self._mirrors[machine]

    def machines(self) -> list[str]:
        """Every machine that has ever reported."""
        return sorted(path.name.removesuffix(".jsonl") for path in self.folder.glob("*.jsonl") if _is_log(path))

    def problems(self) -> list[ChainProblem]:
        """Everything that is wrong with any chain."""
        return [problem for machine in self.machines() for problem in self.mirror(machine).problems()]


def _is_log(path: Path) -> bool:
    return not path.name.endswith(".problems.jsonl")


def _after(lines: list[bytes], last: Link, path: Path) -> list[bytes]:
    """The lines of a block that are not in the mirror yet.

    A block that comes once more, because its machine did not hear the acknowledgement, has none. One that is older than
    the mirror and not in it is a chain that began again: it is kept, and `follow` says what is wrong.
    """
    for index, line in enumerate(lines):
        if link_of(line) == last:
            return lines[index + 1 :]
    ends = link_of(lines[-1]) if lines else None
    if ends is not None and ends.seq < last.seq and _holds(path, ends):
        return []
    return lines


def _holds(path: Path, link: Link) -> bool:
    needle = f'"hash":"{link.hash}"}}\n'.encode()
    with path.open("rb") as file:
        return any(line.endswith(needle) for line in lines_of(file, path.stat().st_size))


def _end_of(path: Path, *, cut: bool = False) -> Link:
    """The last whole record; whoever writes cuts a torn end off, which was never acknowledged. Others only look."""
    try:
        fd = os.open(path, os.O_RDWR if cut else os.O_RDONLY)
    except FileNotFoundError:
        return Link()
    try:
        size = os.fstat(fd).st_size
        line, torn = last_line(fd, size)
        if torn and cut:
            os.ftruncate(fd, size - torn)
        return link_of(line) or Link()
    finally:
        os.close(fd)


def _append_durably(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
