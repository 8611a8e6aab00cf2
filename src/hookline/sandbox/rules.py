"""Landlock's part: writes, and reads if wanted, only beneath given folders."""

from __future__ import annotations

import os
import stat

from hookline.sandbox import kernel
from hookline.sandbox.syscalls import AT_FDCWD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_SINCE = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
_SIGNALS_AND_ABSTRACT_SOCKETS = 1 | 2
SCOPED_SINCE = 6
"""The version from which signals and abstract sockets stay inside."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts",
           "/dev/shm", "/dev/dri")  # fmt: skip
"""What programs write to as a matter of course; none of it is anybody's file."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/dev",
          "/run", "/var", "/nix", "/snap")  # fmt: skip
"""What programs must read to run at all, where reading is restricted."""


class PathRights:
    """The rights that a policy grants, by path. What programs write to as a matter of course is granted from the start.

    The rules may be made ahead: they bind the process that enforces them.
    """

    def __init__(self, version: int, *, reading: bool) -> None:
        self._newer = sum(right for since, right in _SINCE.items() if version >= since)
        self._writes = WRITE_FILE | _REMOVE | _MAKE | self._newer
        self._reads = EXECUTE | READ_FILE | READ_DIR if reading else 0
        scopes = _SIGNALS_AND_ABSTRACT_SOCKETS if version >= SCOPED_SINCE else 0
        handled = self._writes | _MAKE_CHAR | _MAKE_BLOCK | self._reads
        self._ruleset = kernel.landlock_ruleset(handled, 0, scopes, version)
        for path in DEVICES:
            self._allow(path, self._writes | self._reads)

    def allow_writing(self, paths: Iterable[str]) -> None:
        """Grant everything beneath these real paths; one that has become a link meanwhile is granted nothing."""
        for path in paths:
            self._allow(path, self._writes | self._reads, links=False)

    def allow_reading(self, paths: Iterable[str]) -> None:
        """Grant reading beneath these, where reading is restricted."""
        for path in paths:
            self._allow(path, self._reads)

    def enforce(self) -> None:
        """Hold this process, and all that it starts, to the rules. There is no way back."""
        kernel.landlock_restrict(self._ruleset)
        os.close(self._ruleset)

    def _allow(self, path: str, rights: int, *, links: bool = True) -> None:
        try:
            fd = kernel.open_plainly(AT_FDCWD, path, os.O_PATH | os.O_CLOEXEC, links=links)
        except OSError:
            return
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                rights &= EXECUTE | WRITE_FILE | READ_FILE | (self._newer & (_TRUNCATE | _IOCTL))
            kernel.landlock_allow(self._ruleset, rights, fd)
        finally:
            os.close(fd)
