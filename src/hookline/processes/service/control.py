"""Asking the service about itself, and starting and stopping it."""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import time
from typing import Any

from hookline.processes.service import address, client, frames, start

ANSWER_LIMIT = 5.0
"""Seconds that the service has to answer, to start or to end."""


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
            start.start(entry, now=True)
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
    try:
        _request(b"stop", to_the_end=True)
    except NotRunning:
        return False
    return True


def _clean() -> bool:
    """Remove what is left of a service; False while one holds the lock."""
    name = address.instance()
    if not address.is_private(address.folder()):
        return True
    lock = start.take_lock(name)
    if lock is None:
        return False
    for ending in ("sock", "lock", "inbox.sock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{address.folder()}/{name}.{ending}")
    os.close(lock)
    return True


def turn(*, on: bool) -> str:
    """Turn the service on or off for good, for this user; the file that says so."""
    path = client.off_switch()
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
