"""What the shell that we skip would have said about a program's death by a signal."""

from __future__ import annotations

import functools
import signal
import subprocess
from typing import Protocol


class DeathNotice(Protocol):
    """From a signal to the shell's own exit code and what it prints on stderr."""

    def __call__(self, number: int, *, dumped: bool) -> tuple[int, bytes]: ...


SILENT = frozenset({signal.SIGINT, signal.SIGPIPE})


@functools.cache
def death_notice() -> DeathNotice | None:
    """How `/bin/sh -c` reports it; None if it puts the program in its own place, and so dies with it.

    Some shells replace themselves by the last command, others wait for it and translate; asking is cheap, done once.
    """
    asked = subprocess.run(("/bin/sh", "-c", "/bin/sh -c 'kill -TERM $$'"), capture_output=True, check=False)
    return None if asked.returncode < 0 else _translated


def _translated(number: int, *, dumped: bool) -> tuple[int, bytes]:
    if number in SILENT:
        return 128 + number, b""
    words = signal.strsignal(number) or f"Signal {number}"
    return 128 + number, f"{words}{' (core dumped)' if dumped else ''}\n".encode()
