"""What an adapter adds to a tool call, beside what the framework's own hook mechanism adds, in one run."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from bench.harness import Measured, Row, Unavailable, at_most
from tools.frameworks import FOLDER, ROOT, python_of

FRAMEWORKS = ("agent-framework", "langchain", "pydantic-ai", "strands")
PROBE = Path(__file__).parents[1] / "adapter_probe.py"


def rows() -> Iterator[Row]:
    target = at_most(1, "× the framework's own")
    for name in FRAMEWORKS:
        yield Row(f"adapters.{name}", f"what Hookline adds to hooks of {name} per tool call", target, _measure(name))


def _measure(name: str) -> Callable[[], Awaitable[Measured]]:
    async def measure() -> Measured:
        if not (FOLDER / name / ".ready").exists():
            raise Unavailable("run `make frameworks`")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            str(python_of(name)), str(PROBE), name, stdout=pipe, stderr=pipe, cwd=ROOT
        )
        out, errors = await process.communicate()
        if process.returncode:
            raise Unavailable(errors.decode().strip().splitlines()[-1])
        seconds = json.loads(out)
        own, ours = seconds["own"], seconds["ours"]
        if own <= 0:
            raise Unavailable("the machine is too busy: the framework's own hooks seem to cost nothing")
        return Measured(ours / own, note=f"own hooks {own * 1e6:.0f} µs, Hookline {ours * 1e6:.0f} µs more")

    return measure
