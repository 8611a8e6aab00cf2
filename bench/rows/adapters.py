"""What an adapter adds to a tool call, beside what the framework's own hook mechanism adds, in one run."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from bench.harness import Measured, Row, Times, Unavailable, at_most
from tools.frameworks import ROOT, environ, is_ready, python_of

FRAMEWORKS = (
    "agent-framework", "crewai", "google-adk", "langchain", "openai-agents", "pydantic-ai", "strands",
)  # fmt: skip
TWICE = 2
PROBE = Path(__file__).parents[1] / "adapter_probe.py"


def rows() -> Iterator[Row]:
    target = at_most(TWICE, "× own hooks that ask the same")  # beside them it adds no more than they do
    for name in FRAMEWORKS:
        yield Row(f"adapters.{name}", f"hooks through Hookline in {name}, per tool call", target, _measure(name))


def _measure(name: str) -> Callable[[], Awaitable[Measured]]:
    async def measure() -> Measured:
        if not is_ready(name):
            raise Unavailable("run `make frameworks`")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            str(python_of(name)), str(PROBE), name, stdout=pipe, stderr=pipe, cwd=ROOT, env=environ()
        )
        out, errors = await process.communicate()
        if process.returncode:
            raise RuntimeError(errors.decode().strip().splitlines()[-1])
        times = Times(json.loads(out.splitlines()[-1]))
        idle, own, ours = (times.difference(kind, "bare") * 1e6 for kind in ("idle", "own", "ours"))
        ratio = times.within(TWICE, "ours", "own", over="bare")
        note = f"own hooks that ask the same {own:.1f} µs, through Hookline {ours:.1f} µs"
        return Measured(ratio, note=f"{note}; own hooks that do nothing {idle:.1f} µs")

    return measure
