"""A program run to its end in one call."""

from __future__ import annotations

import asyncio

from hookline.processes.pipes import OUTPUT_LIMIT, Launch, OnOutput, ProcessResult, start_process
from hookline.processes.spawn import ProcessSpec


async def run_process(
    spec: ProcessSpec,
    *,
    timeout: float = 60,  # noqa: ASYNC109 - what was printed until then counts
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
    launch: Launch | None = None,
) -> ProcessResult:
    """How the program ended; one that has not after some seconds is stopped, as if it had printed too much."""
    run = await start_process(spec, limit=limit, on_output=on_output, launch=launch)
    timer = asyncio.get_running_loop().call_later(timeout, run.stop)
    finished = await run.finish()
    timer.cancel()
    assert finished is not None  # nothing detaches it
    return finished
