"""Asking the service about itself; starting it, once, and stopping it."""

import _socket
import contextlib
import fcntl
import json
import os
import sys
import time
from typing import Any

from hookline.core.files import state_folder
from hookline.core.interpreter import ISOLATED, python_argv
from hookline.processes.service import address, frames

ANSWER_LIMIT = 5.0  # seconds that the service has to answer, to start or to end


class NotRunning(Exception):
    """There is no service that answers."""


def status() -> dict[str, Any]:
    """What the service says about itself; `NotRunning` if there is none."""
    return _request(b"status")


def begin(entry: str) -> dict[str, Any]:
    """Start the service unless it runs, and wait until it answers; its status. Workers import the module `entry`."""
    begun = time.monotonic()
    while True:
        try:
            return status()
        except NotRunning:
            start(entry, now=True)
        if time.monotonic() - begun > ANSWER_LIMIT:
            raise NotRunning(f"it does not start; see {log_path()}")
        time.sleep(0.02)


def stop() -> bool:
    """Have the service end, and wait until it has; False if none was running. What a killed one left is removed."""
    running = _request_stop()
    begun = time.monotonic()
    while not _clean():
        if time.monotonic() - begun > 2 * ANSWER_LIMIT:
            raise NotRunning("it does not end")
        time.sleep(0.02)
        running = _request_stop() or running  # one that was only starting listens now
    return running


def _request_stop() -> bool:
    with contextlib.suppress(NotRunning):
        return bool(_request(b"stop", to_the_end=True))
    return False


def _clean() -> bool:
    """Remove what is left of a service; False while one holds the lock."""
    name = address.instance()
    if not address.is_private(address.folder()):
        return True
    lock = take_lock(name)
    if lock is None:
        return False
    for ending in ("sock", "lock", "inbox.sock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{address.folder()}/{name}.{ending}")
    os.close(lock)
    return True


def turn(*, on: bool) -> str:
    """Turn the service on or off for good, for this user; the file that says so."""
    path = address.off_switch()
    if on:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as switch:
            switch.write("`hookline service on` removes this file\n")
    return path


def log_path() -> str:
    """The service's log."""
    return f"{address.folder()}/{address.instance()}.log"


def _request(what: bytes, *, to_the_end: bool = False) -> dict[str, Any]:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(ANSWER_LIMIT)
    try:
        connection.connect(f"{address.folder()}/{address.instance()}.sock")
        if not address.is_trusted(connection):
            raise NotRunning("the process at its socket is another user's, or confined differently")
        connection.sendall(frames.head(frames.CONTROL, what))
        kind, payload = frames.read_frame(connection)
        if to_the_end:
            connection.settimeout(2 * ANSWER_LIMIT)
            connection.recv(1)
    except (OSError, frames.FrameError) as problem:
        raise NotRunning(str(problem)) from None
    finally:
        connection.close()
    if kind != frames.RESULT:
        raise NotRunning(payload.decode(errors="replace"))
    answer: dict[str, Any] = json.loads(payload)
    return answer


# -- starting it, once: who holds the lock starts it, and the service keeps the lock while it lives --------------------


PAUSE = 1.0  # seconds between two attempts, so that a service that cannot run does not cost every event an attempt
BOOT = "from hookline.processes.service.server import main; main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""The service's own: nothing of the project whose event happens to start it."""


def start(entry: str, *, now: bool = False) -> None:
    """Start the service in the background unless it runs, starts or has just failed to.

    `entry` is the module that its workers import.
    """
    name = address.instance()
    lock = take_lock(name) if name and sys.executable else None
    if lock is None:
        return
    try:
        found = os.fstat(lock)
        just_tried = found.st_size > 0 and 0 <= time.time() - found.st_mtime < PAUSE
        if now or not just_tried:
            os.pwrite(lock, b"starting\n", 0)
            _launch(name, lock, entry)
    finally:
        os.close(lock)


def _open_folder() -> int:
    """The folder of the user's sockets, made if need be; an error if another user was there first.

    It is the folder itself: a process that may write beside it can replace it after it was looked at.
    """
    folder = address.folder()
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if address.is_private(folder):
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        if address.is_ours_alone(os.fstat(fd)):
            return fd
        os.close(fd)
    raise PermissionError(f"{folder}: not a private folder of this user; remove it, or make it mode 700")


def take_lock(service: str) -> int | None:
    """The open lock file of a service, locked; None while another process holds it."""
    name, folder = f"{service}.lock", _open_folder()
    try:
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
    finally:
        os.close(folder)


def _launch(name: str, lock: int, entry: str) -> None:
    """Start the service as a child of `init`, with no descriptor of ours but the lock."""
    import subprocess

    words = (name, str(lock), entry, str(state_folder()), os.environ.get("HOME", ""))
    argv = ["/bin/sh", "-c", '"$@" &', "sh", *python_argv(BOOT, *words, options=(*ISOLATED, "-S"))]
    null = subprocess.DEVNULL
    subprocess.run(
        argv, stdin=null, stdout=null, stderr=null, cwd="/", env=ENVIRONMENT, umask=0o077, pass_fds=(lock,),
        start_new_session=True, check=False,
    )  # fmt: skip
