"""Judging beside the event loop: what is quick stays on it, anything else does not hold it up."""

from __future__ import annotations

import threading

import pytest

from hookline.guards.off_loop import run_off_loop


@pytest.mark.parametrize(
    "lines, disk, here",
    [
        (["ls"], False, True),
        (["ls"], True, True),
        (["touch /*/*/*/zz"], False, True),
        (["touch /*/*/*/zz"], True, False),
        (["$x " * 20_000], False, False),
        (["ls", "cat a?c"], True, False),
        ([], True, True),
    ],
)
async def test_long_lines_and_walks_over_the_disk_are_judged_on_a_thread(
    lines: list[str], disk: bool, here: bool
) -> None:
    """Wildcards count only for those who look on the disk."""
    thread = await run_off_loop(lines, threading.get_ident, disk=disk)

    assert (thread == threading.get_ident()) is here
