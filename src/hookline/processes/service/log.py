"""The service's log: a bounded file beside the socket."""

from __future__ import annotations

import contextlib
import os
import time

LARGEST = 512 * 1024
"""Bytes after which the log begins again; the half before is kept beside it."""


class Log:
    """Writes lines with their time; a log that cannot be written stops nothing."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, line: str) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError):
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.write(fd, f"{stamp} {line}\n".encode(errors="backslashreplace"))
                if os.fstat(fd).st_size > LARGEST:
                    os.replace(self.path, f"{self.path}.1")
            finally:
                os.close(fd)
