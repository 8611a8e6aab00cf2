"""Whether files are still what they were: by their stamps, and by content where a stamp could lie."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Generator, Iterable
from typing import Generic, TypeVar

GRANULARITY = 2.0
"""Seconds in which a file can change twice without its times showing it, on the coarsest file systems."""

AT_A_TIME = 16
"""Files between two moments in which something else may be done."""

Stamp = tuple[int, ...] | None
T = TypeVar("T")


class Stamps:
    """The state of some files at one moment; `since` is when the first of them may have been read.

    A file that changed after that moment may have been read in its old state, so such stamps are never fresh. One that
    changed shortly before could change again within the same tick of its times: for those the content is compared.
    """

    def __init__(self, stamps: dict[str, Stamp], contents: dict[str, str], *, usable: bool = True) -> None:
        self._stamps, self._contents, self._usable = stamps, contents, usable

    @classmethod
    def take(cls, paths: Iterable[str], since: float) -> Stamps:
        """The state of files now."""
        stamps = {path: stamp(path) for path in paths}
        contents = {path: digest(path) for path, found in stamps.items() if recent(found, since)}
        return cls(stamps, contents, usable=not any(changed_after(found, since) for found in stamps.values()))

    def fresh(self) -> bool:
        """Whether every file is as it was."""
        return Inspection(self.inspect()).result()

    def inspect(self) -> Generator[None, None, bool]:
        """The same, a few files at a time: some two hundred for every event, and others want something meanwhile."""
        if not self._usable:
            return False
        for number, (path, found) in enumerate(self._stamps.items(), 1):
            if stamp(path) != found:
                return False
            if number % AT_A_TIME == 0:
                yield
        now = time.time()
        if any(digest(path) != content for path, content in self._contents.items()):
            return False
        self._contents = {path: content for path, content in self._contents.items() if recent(self._stamps[path], now)}
        return True

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._stamps)


class Inspection(Generic[T]):
    """Steps that lead to a result."""

    def __init__(self, steps: Generator[None, None, T]) -> None:
        self._steps = steps
        self._result: list[T] = []

    def step(self) -> bool:
        """Take one; whether there are more."""
        if not self._result:
            try:
                next(self._steps)
            except StopIteration as end:
                self._result.append(end.value)
        return not self._result

    def result(self) -> T:
        """Take all that are left."""
        while self.step():
            pass
        return self._result[0]


def stamp(path: str) -> Stamp:
    """What a change of the file changes: device, inode, size and both times; None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def changed_after(found: Stamp, since: float) -> bool:
    """Whether a file has changed since a moment; one that claims to be from the future has not."""
    return found is not None and since <= max(found[3], found[4]) / 1e9 <= time.time()


def recent(found: Stamp, moment: float) -> bool:
    """Whether a file's times are too close to a moment to tell a further change; also if they lie after it."""
    return found is not None and max(found[3], found[4]) / 1e9 > moment - GRANULARITY


def digest(path: str) -> str:
    """The content in short; nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, hashlib.blake2b).hexdigest()
    except OSError:
        return ""
