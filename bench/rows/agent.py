"""The agent's own cost: tool calls with ten hooks against none, and a turn beside the official CLI's own."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import Measured, NotMeasurable, Row, Unavailable, at_least, at_most, interleave
from hookline import Hooks
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.events import PostToolUse, PreToolUse
from hookline.guards.permissions import read_rules

CALLS = 5
SESSIONS = 1601  # ten hooks take half a percent of a call; with fewer, the noise of the machine is larger
TURNS = 40


def rows() -> Iterator[Row]:
    what = "tool calls per second (Bash `true`), ten Python hooks on Pre- and PostToolUse each, against none"
    yield Row("agent.throughput", what, at_least(99, "% of without"), throughput)
    yield Row("agent.turn", "one more turn of `hookline run` (a Bash call)", at_most(3, "× the official CLI's"), turn)


async def throughput() -> Measured:
    """Short sessions with and without hooks, in turns, on one core: who is moved to another has a slow moment."""
    with tempfile.TemporaryDirectory() as folder, _one_core():
        times = await interleave(
            {"without": _session(folder, 0), "with": _session(folder, 10)}, rounds=SESSIONS, batch_seconds=0.001
        )
    rate = CALLS / times.seconds("with")
    return Measured(100 * times.ratio("without", "with"), note=f"{rate:.0f} calls/s with hooks")


@contextmanager
def _one_core() -> Iterator[None]:
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _session(folder: str, count: int) -> Callable[[], Any]:
    hooks = Hooks()
    for number in range(count):
        hooks.on(PreToolUse, name=f"before{number}")(_nothing)
        hooks.on(PostToolUse, name=f"after{number}")(_nothing)

    async def session() -> None:
        turns = [{"tools": [["Bash", {"command": "true"}]]}] * CALLS
        agent = Agent(
            model=Scripted.of(*turns, {"text": "done"}), hooks=hooks, cwd=folder, persist=False,
            rules=read_rules({"allow": ["Bash"]}), environ={"PATH": os.defpath, "HOME": folder},
        )  # fmt: skip
        async with agent:
            await agent.run("go")

    return session


async def _nothing(event: object, ctx: object) -> None:
    return None


async def turn() -> Measured:
    """Whole runs with few and with many turns, so that start-up cancels out: what one more turn costs each CLI."""
    from hookline.hosts.claude_code.process import bundled_cli

    theirs = bundled_cli()
    if theirs is None:
        raise Unavailable("no Claude CLI: it comes with claude-agent-sdk")
    ours = Path(sys.executable).with_name("hookline")
    api_of = importlib.import_module("tests.contract.api").Api
    commands = {"ours": [str(ours), "run", "--trust"], "theirs": [str(theirs)]}
    costs: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(3):
        for name, command in commands.items():
            few = await asyncio.to_thread(_run, command, api_of, 1)
            many = await asyncio.to_thread(_run, command, api_of, 1 + TURNS)
            costs[name].append((many - few) / TURNS)
    if min(costs["theirs"]) <= 0:
        raise NotMeasurable("a turn of the official CLI seems to cost nothing; measure on an idle machine")
    ours_ms, theirs_ms = (median(costs[name]) * 1000 for name in ("ours", "theirs"))
    return Measured(ours_ms / theirs_ms, note=f"ours {ours_ms:.0f} ms, official CLI {theirs_ms:.0f} ms a turn")


def _run(command: list[str], api_of: Callable[..., Any], turns: int) -> float:
    """Seconds a whole run takes on a scripted API."""
    script = [{"tools": [["Bash", {"command": "true"}]]} for _ in range(turns)] + [{"text": "done"}]
    api = api_of(script)
    with tempfile.TemporaryDirectory() as home:
        env = {
            "PATH": "/usr/bin:/bin", "HOME": home, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{api.port}",
            "ANTHROPIC_API_KEY": "dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip
        began = time.perf_counter()
        arguments = [*command, "-p", "go", "--allowedTools=Bash", "--output-format", "json"]
        done = subprocess.run(
            arguments, cwd=home, env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False
        )
        seconds = time.perf_counter() - began
    api.close()
    if done.returncode or json.loads(done.stdout.splitlines()[-1]).get("result") != "done":
        raise Unavailable(f"{command[0]} did not finish: {done.stderr.decode()[-300:]}")
    return seconds
