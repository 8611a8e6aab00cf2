"""Where a path in another process leads, and whether that may be written to."""

from __future__ import annotations

import errno
import os
import stat

from hookline.core.paths import inside_any
from hookline.sandbox import kernel
from hookline.sandbox.syscalls import AT_FDCWD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_MOST_LINKS = 40
_LOOK = os.O_PATH | os.O_CLOEXEC
_PROC_TOP = 1
"""The inode of procfs's own top folder, whose links are words; links further down jump."""
_FOR_ALL = ("stat", "statm", "status", "cmdline", "comm")
"""What every process may read of another one."""
_MEMORY = ("/memfd:", "/SYSV", "/anon_hugepage", "/dev/zero (deleted)")
"""How the kernel calls files that lie in no folder."""


_own: list[int] = []
"""The folder of this process's descriptors, where it is kept open."""


class OpenedPath:
    """What a path leads to: its real path and, where something lies there, a handle on it that `with` closes."""

    def __init__(self, path: str, fd: int = -1) -> None:
        self.path: str = path
        self.fd: int = fd

    @property
    def opened(self) -> str:
        """A path by which this very file can be opened from here, also where it has no name any more."""
        return f"/proc/self/fd/{self.fd}" if self.fd >= 0 else self.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd >= 0:
            os.close(self.fd)


def resolve_in_process(thread: int, folder: int, path: str, *, follow: bool = True, base: int = -1) -> OpenedPath:
    """Where a path of another process leads; `self`, standard streams and descriptors in it are that process's own.

    The kernel reads the path. Only where it comes upon a link of procfs, which would lead it to us, is the path walked
    by hand. A file that is still to be made has a place, too; what is no file keeps the name the kernel has for it.
    A path from a folder that is open here is read from `base`, which stays open.
    """
    at = AT_FDCWD if path.startswith("/") else _begin(thread, folder, path, base)
    if not path:
        return OpenedPath(name_of(at), at)
    try:
        found = kernel.open_plainly(at, path, _LOOK if follow else _LOOK | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
        return _walk(thread, _begin(thread, folder, path, base), path, follow=follow)
    finally:
        if at >= 0:
            os.close(at)
    return OpenedPath(name_of(found), found)


def resolve_parent(thread: int, folder: int, path: str, base: int = -1) -> tuple[OpenedPath, str]:
    """The folder that a path's last name lies in, and that name; `.` for the folder itself. ENOENT if there is none."""
    if not path:
        raise kernel.error(errno.ENOENT)
    way, slash, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        way, name = path, "."
    way = way or ("/" if slash else "")
    parent = resolve_in_process(thread, folder, way, base=base)
    if parent.fd >= 0 and kernel.is_proc(parent.fd):  # `/proc/self` has led the kernel to us
        os.close(parent.fd)
        parent = _walk(thread, _begin(thread, folder, way, base), way, follow=True)
        if parent.fd >= 0 and name not in _FOR_ALL and _is_ours(parent.path):
            os.close(parent.fd)
            raise kernel.error(errno.EACCES)
    if parent.fd < 0:
        raise kernel.error(errno.ENOENT)
    return parent, name


def _is_ours(path: str) -> bool:
    """Whether a path of procfs is this process's, a thread's of it, or that of the process that waits for this one."""
    own = {str(os.getppid()), *os.listdir("/proc/self/task")}
    return any(part in own for part in path.split("/"))


def real(thread: int, folder: int, path: str, *, follow: bool = True) -> str:
    """The real path of what a path of another process leads to."""
    with resolve_in_process(thread, folder, path, follow=follow) as place:
        return place.path


def _begin(thread: int, folder: int, path: str, base: int) -> int:
    """The folder that a path is read from, open: the root, one that is open here, or one of the other process."""
    if base >= 0 and not path.startswith("/"):
        return os.dup(base)
    own = f"/proc/{thread}/cwd" if folder == AT_FDCWD else f"/proc/{thread}/fd/{folder}"
    return os.open("/" if path.startswith("/") else own, _LOOK)


def own_real(path: str) -> str:
    """The real path of what a path of our own leads to, as the kernel reads it; also of what is not there."""
    try:
        with OpenedPath(path, os.open(path, _LOOK)) as place:
            return name_of(place.fd)
    except OSError:
        return os.path.realpath(path)


def name_of(fd: int) -> str:
    """The name that the kernel has for an open file."""
    return os.readlink(f"{fd}", dir_fd=_own[0]) if _own else os.readlink(f"/proc/self/fd/{fd}")


def keep_names() -> None:
    """Keep the folder of our descriptors open, in which names are found sooner. This process forks no more."""
    _own.append(os.open("/proc/self/fd", _LOOK))


def _walk(thread: int, at: int, path: str, *, follow: bool) -> OpenedPath:
    """Go along a path name by name, from an open folder that is closed on the way."""
    left = _names(path)[::-1]  # the next one last
    follow = follow or path.endswith("/")
    links = 0
    try:
        while left:
            name = left.pop()
            try:
                there = os.open(name, _LOOK | os.O_NOFOLLOW, dir_fd=at)
            except FileNotFoundError:
                if left:
                    raise
                return OpenedPath(f"{name_of(at).rstrip('/')}/{name}")
            if not stat.S_ISLNK(os.fstat(there).st_mode) or not (left or follow):
                at = _moved(at, there)
                continue
            links += 1
            target = _target(thread, at, name, there)
            if target is None:
                at = _moved(at, os.open(name, _LOOK, dir_fd=at))
                continue
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            follow = follow or target.endswith("/")
            left += _names(target)[::-1]
            if target.startswith("/"):
                at = _moved(at, os.open("/", _LOOK))
        place, at = OpenedPath(name_of(at), at), -1
        return place
    finally:
        if at >= 0:
            os.close(at)


def _target(thread: int, folder: int, name: str, link: int) -> str | None:
    """What a link says to that process, or None for a link of procfs that leads to a file without saying a path."""
    try:
        if not kernel.is_proc(link):
            return os.readlink("", dir_fd=link)
        top = os.fstat(folder)
        if top.st_ino != _PROC_TOP:
            return None
        if top.st_dev != os.stat("/proc").st_dev:
            raise PermissionError(errno.EACCES, "processes of another namespace", name)
        return str(thread) if name in ("self", "thread-self") else os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _moved(before: int, after: int) -> int:
    os.close(before)
    return after


class WritablePlaces:
    """The folders and files that may be written to, by where they really are."""

    def __init__(self, granted: list[str]) -> None:
        self._granted = granted
        self._exact: set[str] = set()

    def look(self) -> None:
        if not self._exact:
            self._exact = set(map(own_real, self._granted))
            self._below = (*(path.rstrip("/") + "/" for path in self._exact), *_MEMORY)

    def grant(self, path: str) -> bool:
        """Whether a real path is one of them or lies below one, by how they were named: a first look."""
        return inside_any(path, self._granted)

    def hold(self, path: str) -> bool:
        """Whether a real path is one of them or lies below one; pipes, memory and their like have no place."""
        self.look()
        return not path.startswith("/") or path in self._exact or path.startswith(self._below)
