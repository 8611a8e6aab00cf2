"""Where a path in another process leads, and whether that may be written to."""

from __future__ import annotations

import os

from hookline.confine.syscalls import AT_FDCWD

_MOST_LINKS = 40
_LOOK = os.O_PATH | os.O_CLOEXEC
_STREAMS = {"/dev/stdin": "fd/0", "/dev/stdout": "fd/1", "/dev/stderr": "fd/2", "/dev/fd": "fd"}


def seen_from_here(thread: int, folder: int, path: str) -> str:
    """A path of another process as one that can be opened from here; links to `self` are that process's."""
    if not path.startswith("/"):
        base = f"/proc/{thread}/cwd" if folder == AT_FDCWD else f"/proc/{thread}/fd/{folder}"
        return f"{base}/{path}" if path else base
    for prefix, name in _STREAMS.items():
        if path == prefix or path.startswith(prefix + "/"):
            return f"/proc/{thread}/{name}{path[len(prefix) :]}"
    for prefix in ("/proc/self", "/proc/thread-self"):
        if path == prefix or path.startswith(prefix + "/"):
            return f"/proc/{thread}{path[len(prefix) :]}"
    return path


def real(path: str, *, follow: bool) -> str:
    """Where a path leads, by the kernel's own reading; also where nothing lies yet. What is no file keeps its name."""
    for _ in range(_MOST_LINKS):
        found = _opened(path, follow=follow)
        if found is not None:
            return found
        folder, _, name = path.rstrip("/").rpartition("/")
        parent = _opened(folder or "/", follow=True)
        if parent is None or not name:
            raise FileNotFoundError(2, os.strerror(2), path)
        place = f"{parent.rstrip('/')}/{name}"
        target = _link(place) if follow else None
        if target is None:
            return place
        path = os.path.join(parent, target)
    raise OSError(40, os.strerror(40), path)


def _opened(path: str, *, follow: bool) -> str | None:
    try:
        fd = os.open(path, _LOOK if follow else _LOOK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


class Places:
    """The folders and files that may be written to, by where they really are."""

    def __init__(self, granted: list[str]) -> None:
        self._exact = {os.path.realpath(path) for path in granted}
        self._below = tuple(path.rstrip("/") + "/" for path in self._exact)

    def hold(self, path: str) -> bool:
        """Whether a real path is one of them or lies below one; pipes and other things without a place are nobody's."""
        return not path.startswith("/") or path in self._exact or path.startswith(self._below)
