"""Command hooks: a shell, a Python script, and a hundred at once, beside the barest way of starting a process."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.harness import Measured, Row, Unavailable, at_least, at_most, interleave
from hookline import Command, Hooks
from hookline.core.wire import claude
from hookline.events import PreToolUse
from hookline.runners.command import CommandRunner

SHELL = "read -r line; echo '{}'"
SCRIPT = """
import json, sys
event = json.load(sys.stdin)
if "rm -rf" in event["tool_input"]["command"]:
    sys.exit("no")
print(json.dumps({"suppressOutput": True}))
"""
EVENT = PreToolUse(cwd="/", tool_name="Bash", tool_input={"command": "ls -la"})
LINE = claude.encode_event(EVENT) + b"\n"
AT_ONCE = 100
TURNS = 7


def rows() -> Iterator[Row]:
    yield Row("commands.sh", "`sh` command hook, fired", at_most(1.3, "× posix_spawn with two pipes"), shell)
    yield Row("commands.python", "Python script hook, second run on", at_least(6, "× as fast as spawned"), python)
    yield Row("commands.parallel", "100 `sh` hooks at once: longest stall of the loop", at_most(10, "ms"), parallel)


async def shell() -> Measured:
    async with hook(SHELL) as hooks:
        times = await interleave(
            {
                "ours": _firing(hooks),
                "posix_spawn": lambda: spawned("/bin/sh", "sh", "-c", SHELL),
                "asyncio exec": asyncio_exec,
                "asyncio shell": asyncio_shell,
            },
            rounds=41,
            batch_seconds=0.05,
        )
    peers = {name: times.ratio(name, "posix_spawn") for name in ("asyncio exec", "asyncio shell")}
    return Measured(times.ratio("ours", "posix_spawn"), peers, f"{times.seconds('ours') * 1e3:.2f} ms")


async def python() -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "hook.py"
        script.write_text(SCRIPT)
        async with hook(f"{sys.executable} {script}") as hooks:
            await _warm(hooks)
            times = await interleave(
                {"ours": _firing(hooks), "spawned": lambda: spawned(sys.executable, sys.executable, str(script))},
                rounds=25,
                batch_seconds=0.05,
            )
    note = f"{times.seconds('ours') * 1e3:.2f} ms, spawned {times.seconds('spawned') * 1e3:.1f} ms"
    return Measured(times.ratio("spawned", "ours"), note=note)


async def parallel() -> Measured:
    """The longest time for which the loop could not turn, in the median of several bursts."""
    async with hook(SHELL) as hooks:
        stalls = [await _stalled(hooks) for _ in range(TURNS)]
    note = f"median of {TURNS} bursts; worst {max(stalls) * 1e3:.1f} ms"
    return Measured(sorted(stalls)[TURNS // 2] * 1e3, note=note)


async def _stalled(hooks: Hooks) -> float:
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0.005)
    longest = 0.0
    await asyncio.gather(*(hooks.fire(EVENT) for _ in range(AT_ONCE)))
    heart.cancel()
    return longest


# ── candidates ───────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def hook(command: str) -> AsyncIterator[Hooks]:
    if os.name == "nt":
        raise Unavailable("command hooks need process groups")
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command=command))
        yield hooks


def _firing(hooks: Hooks) -> Callable[[], Awaitable[None]]:
    async def fire() -> None:
        verdict = await hooks.fire(EVENT)
        assert verdict.outcomes[0].error is None, verdict.outcomes[0]

    return fire


async def _warm(hooks: Hooks) -> None:
    await hooks.fire(EVENT)
    runner = hooks.engine.runners.of(hooks.hooks[0])
    assert isinstance(runner, CommandRunner)
    if runner.warm is None:
        raise Unavailable("warm interpreters are turned off")
    await runner.warm.warmed()


def spawned(program: str, *argv: str) -> None:
    """The barest way: posix_spawn, a pipe in, a pipe out, wait."""
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, read_in, 0), (os.POSIX_SPAWN_DUP2, write_out, 1)]
    pid = os.posix_spawn(program, argv, os.environ, file_actions=actions)
    os.close(read_in)
    os.close(write_out)
    os.write(write_in, LINE)
    os.close(write_in)
    while os.read(read_out, 65_536):
        pass
    os.close(read_out)
    os.waitpid(pid, 0)


async def asyncio_exec() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", SHELL, stdin=pipe, stdout=pipe, stderr=pipe)
    await process.communicate(LINE)


async def asyncio_shell() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_shell(SHELL, stdin=pipe, stdout=pipe, stderr=pipe)
    await process.communicate(LINE)
