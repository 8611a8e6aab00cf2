"""The real stdout, kept for answers alone.

Hooks print: with `print`, from C, from programs they start. On a stdout that a host parses, one such line turns a
deny into nonsense. So the descriptor is kept aside, and whatever else is written to stdout goes to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_STDOUT, _STDERR = 1, 2


def claim_stdout() -> BinaryIO:
    """Where answers are written from now on; descriptor 1 is stderr's until the process ends, for its children, too."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "reconfigure"):  # while it is what it was opened for: it may seek in a file, not in a pipe
        sys.stdout.reconfigure(errors="backslashreplace")  # a hook's umlaut is not worth a crash
    kept = os.dup(_STDOUT)  # not inherited by programs that hooks start
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # stderr is closed: it will not be read
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, _STDOUT)
        os.close(nowhere)
    return os.fdopen(kept, "wb")


@contextmanager
def borrowed_stdout() -> Iterator[None]:
    """As `claim_stdout`, and put back afterwards."""
    with claim_stdout() as kept:
        try:
            yield
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os.dup2(kept.fileno(), _STDOUT)
