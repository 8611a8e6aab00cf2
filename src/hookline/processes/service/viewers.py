"""Onlookers: a program that shows verdicts has a socket in the user's folder, which commands write to."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from typing import Self

from hookline.processes.service import start

LONGEST = 4000
"""Characters of a verdict that are shown."""
_ENDING = ".view"


class View:
    """One onlooker; iterating gives what is said and whether something was blocked, as it happens."""

    def __enter__(self) -> Self:
        remove_dead()
        self.path = f"{start.make_folder()}/{os.getpid()}{_ENDING}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        os.unlink(self.path)

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        while True:
            said = _read(self._socket.recv(1 << 16))
            if said is not None:
                yield said


def _read(data: bytes) -> tuple[str, bool] | None:
    """What `show` has sent; nothing if it is something else."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    match said:
        case [str(text), bool(blocked)]:
            return text, blocked
    return None


def show(path: str, text: str, *, blocked: bool) -> None:
    """Tell an onlooker; one that has gone, or does not keep up, misses it."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.setblocking(False)
        link.sendto(json.dumps([text[:LONGEST], blocked]).encode(), path)


def remove_dead() -> None:
    """Remove what onlookers that were killed have left."""
    folder = start.make_folder()
    for name in os.listdir(folder):
        if name.endswith(_ENDING):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
                try:
                    link.connect(f"{folder}/{name}")
                except (ConnectionRefusedError, FileNotFoundError):  # or it ends just now, by itself
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(f"{folder}/{name}")
