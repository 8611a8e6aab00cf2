"""Judging without holding up the event loop: what is quick is done at once, anything else on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
_LONG = 4096
"""Letters of a shell line that are read in a millisecond or so."""
_WILD = frozenset("*?[{")


async def run_off_loop(lines: Iterable[str], work: Callable[[], T], *, disk: bool = False) -> T:
    """The work's result; on a thread when the lines it reads are long, or have wildcards and it looks on the disk."""
    if any(len(line) > _LONG or (disk and not _WILD.isdisjoint(line)) for line in lines):
        return await asyncio.to_thread(work)
    return work()
