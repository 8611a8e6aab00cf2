"""Files that several processes share: a lock that ends with its holder, and contents that change all at once."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_BEYOND = 1 << 30  # Windows locks bytes, and locked ones cannot be read: so it is one beyond any that are written


if sys.platform == "win32":
    import msvcrt

    _WAIT, _NOW, _NONE = msvcrt.LK_LOCK, msvcrt.LK_NBLCK, msvcrt.LK_UNLCK

    def _lock(fd: int, how: int) -> None:
        os.lseek(fd, _BEYOND, os.SEEK_SET)
        while True:
            try:
                return msvcrt.locking(fd, how, 1)
            except OSError as problem:
                if how != _WAIT or problem.errno != errno.EDEADLK:  # it only gave up after ten seconds of waiting
                    raise

else:
    import fcntl

    _WAIT, _NOW, _NONE = fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN
    _lock = fcntl.flock


def lock_now(fd: int) -> None:
    """Lock an open file without waiting; raises `OSError` if another process holds it."""
    _lock(fd, _NOW)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold the lock on a file, which is made if it is not there; its descriptor is for reading and writing."""
    fd = os.open(path, _FLAGS, 0o600)
    try:
        _lock(fd, _WAIT)
        try:
            yield fd
        finally:
            _lock(fd, _NONE)  # said aloud: a process forked meanwhile would hold it open
    finally:
        os.close(fd)


def try_lock(path: Path) -> int | None:
    """Take the lock on a file without waiting, until the descriptor is closed; `None` if another process holds it."""
    fd = os.open(path, _FLAGS, 0o600)
    try:
        lock_now(fd)
    except OSError:
        os.close(fd)
        return None
    return fd


def read_at(fd: int, length: int, offset: int) -> bytes:
    """Bytes from the middle of a file."""
    os.lseek(fd, offset, os.SEEK_SET)
    parts = []
    while length > 0 and (part := os.read(fd, length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """A small piece of a file, in one write."""
    os.lseek(fd, offset, os.SEEK_SET)
    os.write(fd, data)


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
    """Replace a file's contents at once: a reader sees the old ones or the new ones, never a part.

    A link is followed, so that the file it leads to changes and the link stays. With `durable` the contents survive a
    loss of power. If anything fails, the old contents stay and nothing is left behind.
    """
    import tempfile  # not at every start of a command: it imports a dozen modules

    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def private_folder(path: Path) -> Path:
    """A folder that is there: made for this user alone if it was not, as are those above it, whatever the umask is."""
    if not path.is_dir():
        private_folder(path.parent)
        path.mkdir(0o700, exist_ok=True)
    return path


def remove_older(paths: Iterable[Path], seconds: float) -> None:
    """Remove the files that were written longer ago than this; one that cannot be removed stays."""
    oldest = time.time() - seconds
    for path in paths:
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def private(path: str, flags: int) -> int:
    """The `opener` of an `open` that makes files for this user alone, whatever the umask is."""
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)


def state_folder(env: Mapping[str, str] | None = None) -> Path:
    """Where Hookline keeps what outlives a run for this user; `XDG_STATE_HOME` moves it."""
    env = os.environ if env is None else env
    base = Path(env.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path(env.get("HOME") or Path.home(), ".local/state")) / "hookline"


def default_log() -> Path:
    """The audit log that `install --audit` writes and `console` opens, if no other is named."""
    return state_folder() / "log" / "audit.jsonl"


def in_fleet() -> bool:
    """Whether this machine belongs to a fleet: one look at one file."""
    return (state_folder() / "fleet/machine.json").exists()


def other_names(path: str) -> bool:
    """Whether a file has more names than this one: writing to it changes what they show, too."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return False
    return status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)


def identity(path: str) -> tuple[int, int] | None:
    """What tells a file from every other one, whatever it is called; None when it is not there."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
