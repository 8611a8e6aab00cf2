"""Landlock's part: writes, and reads if wanted, only beneath given folders."""

from __future__ import annotations

import os
import stat
import struct
import sys

from hookline.core.paths import inside_any
from hookline.sandbox import kernel, libc
from hookline.sandbox.secret_places import HiddenPlaces, around, folders_around, limits_view, read_table
from hookline.sandbox.syscalls import AT_FDCWD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_SINCE = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
_SIGNALS_AND_ABSTRACT_SOCKETS = 1 | 2
BIND_TCP, CONNECT_TCP, TCP_SINCE = 1, 2, 4
SCOPED_SINCE = 6
"""The version from which signals and abstract sockets stay inside."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts",
           "/dev/shm", "/dev/dri")  # fmt: skip
"""What programs write to as a matter of course; none of it is anybody's file."""

_OWN = (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""This interpreter and Hookline: the supervisor, which has the same rules, reads modules as it needs them."""


class PathRights:
    """The rights that a policy grants, by path. What programs write to as a matter of course is granted from the start.

    The rules may be made ahead: they bind the process that enforces them.
    """

    def __init__(self, version: int, *, reading: bool, scoped: bool = True, tcp: int = 0) -> None:
        self._newer = sum(right for since, right in _SINCE.items() if version >= since)
        self._writes = WRITE_FILE | _REMOVE | _MAKE | self._newer
        self._reads = EXECUTE | READ_FILE | READ_DIR if reading else 0
        scopes = _SIGNALS_AND_ABSTRACT_SOCKETS if scoped and version >= SCOPED_SINCE else 0
        handled = self._writes | _MAKE_CHAR | _MAKE_BLOCK | self._reads
        fields = [handled, tcp, scopes][: 3 if version >= SCOPED_SINCE else 2 if version >= TCP_SINCE else 1]
        known = struct.pack(f"{len(fields)}Q", *fields)  # what a kernel does not know is left out
        self._ruleset = kernel.call("landlock_create_ruleset", known, libc.c_size_t(len(known)), libc.c_uint32(0))
        for path in DEVICES:
            self._allow(path, self._writes | self._reads)

    def allow_writing(self, paths: Iterable[str]) -> None:
        """Grant everything beneath these real paths; one that has become a link meanwhile is granted nothing."""
        for path in paths:
            self._allow(path, self._writes | self._reads, links=False)

    def allow_reading(self, paths: Iterable[tuple[str, bool]]) -> None:
        """Grant reading of these, where it is restricted: real paths, each with whether it is a folder."""
        for path, folder in paths:
            try:
                fd = os.open(path, _LOOK)
            except OSError:
                continue  # it has gone
            self._grant(fd, self._reads if folder else self._reads & ~READ_DIR)

    def allow_listing(self) -> None:
        """Grant the names in every folder, where reading is restricted."""
        self._allow("/", self._reads & READ_DIR)

    def enforce(self) -> None:
        """Hold this process, and all that it starts, to the rules. There is no way back."""
        kernel.call("landlock_restrict_self", libc.c_int(self._ruleset), libc.c_uint32(0))
        os.close(self._ruleset)

    def _allow(self, path: str, rights: int, *, links: bool = True) -> None:
        try:
            fd = kernel.open_plainly(AT_FDCWD, path, os.O_PATH | os.O_CLOEXEC, links=links)
        except OSError:
            return
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= EXECUTE | WRITE_FILE | READ_FILE | (self._newer & (_TRUNCATE | _IOCTL))
        self._grant(fd, rights)

    def _grant(self, fd: int, rights: int) -> None:
        """Grant rights beneath an open folder, or on an open file, which is closed."""
        rule = struct.pack("=Qi", rights, fd)
        try:
            kernel.call("landlock_add_rule", libc.c_int(self._ruleset), libc.c_int(1), rule, libc.c_uint32(0))
        finally:
            os.close(fd)


class ReadRules:
    """What may be read, as Landlock's rules, which take the longest of all rules to make: they may be made ahead."""

    def __init__(self, read: tuple[str, ...] | None, hidden: HiddenPlaces) -> None:
        self._read, self._hidden = read, hidden
        self._rights: PathRights | None = None
        self._times: dict[str, int] = {}

    def fits(self, other: ReadRules) -> bool:
        """Whether these say what others say, and nothing has appeared in a folder that they list."""
        same = (self._read, self._hidden.outside, self._hidden.shown) == (
            other._read, other._hidden.outside, other._hidden.shown,
        )  # fmt: skip
        return same and self._times == _times(self._times)

    def rights(self) -> PathRights | None:
        """The rules, with those for devices; None where there is no Landlock."""
        version = kernel.landlock_version()
        if self._rights is None and version:
            reading = self._read is not None or bool(self._hidden.outside)
            self._rights = PathRights(version, reading=reading, scoped=False)
            if reading:
                self._grant(self._rights)
        return self._rights

    def _grant(self, rights: PathRights) -> None:
        hidden = [*self._hidden.outside, "/dev"]
        if self._read is None:
            tops = ["/"]
            rights.allow_listing()
        else:
            whole = [] if limits_view(self._read) else ["/proc", *(row.partition("=")[0] for row in read_table("view"))]
            tops = [os.path.realpath(path) for path in (*self._read, *read_table("system"), *whole, *_OWN)]
            hidden += [path for path in read_table("accounts") if not inside_any(path, self._read)]
        self._times = _times(folders_around(hidden))
        rights.allow_reading(around([*tops, *self._hidden.shown], hidden))


def _times(folders: Iterable[str]) -> dict[str, int]:
    """When something was last made or removed in each of some folders."""
    return {folder: os.stat(folder).st_mtime_ns for folder in folders}
