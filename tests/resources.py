"""What this process and this machine hold: open descriptors, children, running programs."""

import gc
import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]


def descriptors() -> int:
    """How many are open here, those aside that only wait to be collected: a test before may have left some.

    Compare with `<=`: what an earlier test left may also be closed meanwhile.
    """
    gc.collect()
    return len(list(Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd").iterdir()))


def children() -> set[int]:
    """Every child of this process, zombies too; compare with `<=`, since what other tests left may end meanwhile."""
    return {process.pid for process in psutil.Process().children()}


def command_lines() -> list[list[str]]:
    """The words of every program on this machine; one that ends meanwhile is passed over."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode("utf-8", "replace").split("\0"))
        except OSError:
            continue
    return found
