"""A program run to its end in one call."""

from __future__ import annotations

from collections.abc import Awaitable

from hookline.processes.pipes import OUTPUT_LIMIT, Launch, OnOutput, ProcessResult, start_process
from hookline.processes.spawn import ProcessSpec


async def run_process(
    spec: ProcessSpec,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - a timeout has a result of its own
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
    cancelled: Awaitable[object] | None = None,
    launch: Launch | None = None,
) -> ProcessResult:
    """How the program ended."""
    run = await start_process(spec, limit=limit, on_output=on_output, launch=launch)
    finished = await run.finish(timeout, cancelled)
    assert finished is not None  # nothing detaches it
    return finished
