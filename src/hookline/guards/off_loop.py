"""Judging without holding up the event loop: what is quick is done at once, anything else on a thread."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hookline.guards.tool_inputs import Line
from hookline.replies import Reply

T = TypeVar("T")
_LONG = 4096  # letters of a shell line that are read in a millisecond or so
_WILD = frozenset("*?[{")


async def run_off_loop(lines: Iterable[str], work: Callable[[], T], *, disk: bool = False) -> T:
    """The work's result; on a thread when the lines it reads are long, or have wildcards and it looks on the disk."""
    if any(len(line) > _LONG or (disk and not _WILD.isdisjoint(line)) for line in lines):
        return await asyncio.to_thread(work)
    return work()


async def judge_lines(
    lines: Sequence[Line], judge: Callable[[Line], Reply | None], *, disk: bool = False
) -> Reply | None:
    """The strictest of the answers to these lines."""
    return await run_off_loop([line.text for line in lines], lambda: strictest(*map(judge, lines)), disk=disk)


def strictest(*replies: Reply | None) -> Reply | None:
    """The reply that allows least; the first of several."""
    return max(filter(None, replies), key=lambda reply: reply.decision, default=None)
