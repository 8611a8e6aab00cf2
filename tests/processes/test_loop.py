"""What an event loop has of its own, and what runs beside a block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from hookline.processes.loop import PerLoop, running


async def test_what_runs_beside_a_block_ends_with_it() -> None:
    """It is cancelled and has ended once the block has, also when the block fails."""
    ended: list[str] = []

    async def wait(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def beside(name: str, problem: Exception | None) -> None:
        async with running(wait(name)):
            await asyncio.sleep(0)
            if problem is not None:
                raise problem

    await beside("well", None)
    with pytest.raises(ValueError, match="broke"):
        await beside("badly", ValueError("broke"))

    assert ended == ["well", "badly"]


async def test_a_result_can_be_awaited_in_the_block() -> None:
    """The work is a future; what it raises is the block's business."""

    async def answer() -> int:
        return 42

    async with running(answer()) as work:
        assert await work == 42


def test_each_loop_has_its_own_and_takes_it_along() -> None:
    """One thing a loop, made once; it ends with its loop, or with all of them."""
    made: list[str] = []

    async def life() -> AsyncGenerator[int, None]:
        number = len(made)
        made.append("open")
        try:
            yield number
        finally:
            made[number] = "ended"

    things = PerLoop(life)

    async def twice() -> tuple[int, int]:
        return await things.get(), await things.get()

    async def closed() -> int:
        found = await things.get()
        await things.aclose()
        return found

    assert asyncio.run(twice()) == (0, 0)
    assert made == ["ended"]
    assert asyncio.run(closed()) == 1
    assert made == ["ended", "ended"]
