"""What lies in protected places, taken down before a line and put back after it: for kernels before Linux 5.19.

There the supervisor cannot make calls in a line's name, so that what runs later can be changed while the line runs.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Entry = tuple[int, bytes]

_LARGEST = 1 << 22


class Snapshot:
    """Files and links in some places: their modes, and what they hold."""

    def __init__(self, places: Iterable[str]) -> None:
        self._places = list(places)
        self._before = _entries(self._places)

    def put_back(self) -> list[str]:
        """Make everything as it was; the paths that were not."""
        after = _entries(self._places)
        changed = sorted(path for path in self._before | after if self._before.get(path) != after.get(path))
        for path in changed:
            with suppress(OSError):
                if path in after:
                    os.unlink(path)
                if path in self._before:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    _write(path, *self._before[path])
        return changed


def _entries(places: Iterable[str]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    waiting = list(places)
    while waiting:
        path = waiting.pop()
        with suppress(OSError):
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                waiting += [f"{path}/{name}" for name in os.listdir(path)]
            else:
                found[path] = (mode, _held(path, mode))
    return found


def _held(path: str, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(os.readlink(path))
    if not stat.S_ISREG(mode):
        return b""
    with open(path, "rb") as file:
        return file.read(_LARGEST)


def _write(path: str, mode: int, held: bytes) -> None:
    if stat.S_ISLNK(mode):
        os.symlink(held, os.fsencode(path))
    elif stat.S_ISREG(mode):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, stat.S_IMODE(mode)), "wb") as file:
            file.write(held)
