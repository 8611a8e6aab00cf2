"""Starting the user's service, once: who holds the lock starts it, and the service keeps the lock while it lives."""

import fcntl
import os
import sys
import time

from hookline.core.files import state_folder
from hookline.core.interpreter import ISOLATED, python_argv
from hookline.processes.service import address

PAUSE = 1.0
"""Seconds between two attempts, so that a service that cannot run does not cost every event an attempt."""
LOCK_FD = 3
_NOT_PRIVATE = "{}: not a private folder of this user; remove it, or make it mode 700"
BOOT = f"from hookline.processes.service.server import main; main(sys.argv[1], {LOCK_FD}, *sys.argv[2:])"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""The service's own: nothing of the project whose event happens to start it."""


def start(entry: str, *, now: bool = False) -> bool:
    """Start the service in the background unless it runs, starts or has just failed to; whether it was started.

    `entry` is the module that its workers import.
    """
    name = address.instance()
    if not name or not sys.executable:
        return False
    lock = take_lock(name)
    if lock is None:
        return False
    try:
        if not now and _just_tried(lock):
            return False
        os.pwrite(lock, b"starting\n", 0)
        _launch(name, lock, entry)
    finally:
        os.close(lock)
    return True


def make_folder() -> str:
    """The folder of the user's sockets, made if need be; an error if another user was there first."""
    folder = address.folder()
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not address.is_private(folder):
            raise PermissionError(_NOT_PRIVATE.format(folder)) from None
    return folder


def _open_folder() -> int:
    """The folder itself: a process that may write beside it can replace it after it was looked at."""
    folder = make_folder()
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
    if not address.is_ours_alone(os.fstat(fd)):
        os.close(fd)
        raise PermissionError(_NOT_PRIVATE.format(folder))
    return fd


def take_lock(name: str) -> int | None:
    """The open lock file of a service, locked; None while another process holds it."""
    folder = _open_folder()
    try:
        return _take_lock(f"{name}.lock", folder)
    finally:
        os.close(folder)


def _take_lock(name: str, folder: int) -> int | None:
    while True:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(name, dir_fd=folder)):  # else a service has just removed it
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except FileNotFoundError:
            pass
        os.close(fd)


def _just_tried(lock: int) -> bool:
    found = os.fstat(lock)
    return found.st_size > 0 and 0 <= time.time() - found.st_mtime < PAUSE


def _launch(name: str, lock: int, entry: str) -> None:
    """Start the service as a child of `init`, with no descriptor of ours but the lock."""
    argv = python_argv(BOOT, name, entry, str(state_folder()), os.environ.get("HOME", ""), options=(*ISOLATED, "-S"))
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork() == 0:
            _become(argv, lock)
    finally:
        os._exit(0)


def _become(argv: list[str], lock: int) -> None:
    os.dup2(lock, 9)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.dup2(9, LOCK_FD)
    os.closerange(LOCK_FD + 1, 1 << 16)
    os.chdir("/")
    os.umask(0o077)
    os.execve(argv[0], argv, ENVIRONMENT)  # noqa: S606 - as meant
