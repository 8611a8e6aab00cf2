"""The service: what a `hookline …` command hook costs, beside the start of Python itself."""

import asyncio
import contextlib
import importlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import Measured, Row, Times, Unavailable, at_most, interleave, shuffled

PASS = (sys.executable, "-c", "pass")
HOOKLINE = str(Path(sys.executable).with_name("hookline"))
GUARD = (HOOKLINE, "guard", "commands", "--block", "rm -rf *", "--block", "sudo *")
EVENT = json.dumps(
    {
        "hook_event_name": "PreToolUse", "session_id": "bench", "transcript_path": "", "cwd": "/",
        "tool_name": "Bash", "tool_input": {"command": "ls -la"},
    }
).encode()  # fmt: skip
UNIT = "× python -c pass"
AT_ONCE = 20
SESSIONS, CALLS = 4, 31
"""Of the Claude CLI, and of each kind inside one; a single session lets chance say a quarter more or less."""


def rows() -> Iterator[Row]:
    yield Row("service.import", "`import hookline`", at_most(4, UNIT), imported)
    yield Row("service.help", "`hookline --help`", at_most(4, UNIT), helped)
    yield Row("service.guard", "`hookline guard commands`, second run on", at_most(1.5, UNIT), guarded)
    yield Row(
        "service.crowd", f"the same, {AT_ONCE} at once, p95", at_most(4, f"{UNIT}, {AT_ONCE} at once, p95"), crowded
    )
    yield Row(
        "service.claude", "the starter guards inside the real Claude CLI, per tool call",
        at_most(1.3, "× what a `python -c pass` hook adds"), starter_in_claude,
    )  # fmt: skip
    yield Row(
        "service.confined", "the same with the line confined, as the starter has it",
        at_most(2, "× what a `python -c pass` hook adds, over a line that is not"), confined_in_claude,
    )  # fmt: skip


def process(env: dict[str, str], *argv: str) -> float:
    """Run a program on the event; the seconds it took."""
    begun = time.perf_counter()
    subprocess.run(argv, env=env, input=EVENT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


@contextlib.contextmanager
def service() -> Iterator[dict[str, str]]:
    """A service of our own that has answered already; its environment."""
    if not Path(HOOKLINE).exists():
        raise Unavailable(f"no {HOOKLINE}: install the package first")
    env = {**os.environ, "HOOKLINE_SERVICE": f"bench-{os.getpid()}"}

    def status() -> Any:
        done = subprocess.run([HOOKLINE, "service", "status", "--json"], env=env, capture_output=True, check=False)
        return json.loads(done.stdout)

    try:
        end = time.monotonic() + 60
        while not status().get("events"):
            process(env, *GUARD)
            if time.monotonic() > end:
                raise Unavailable("the service does not answer; see `hookline service logs`")
        yield env
    finally:
        subprocess.run([HOOKLINE, "service", "stop"], env=env, stdout=subprocess.DEVNULL, check=False)


async def beside_python(env: dict[str, str], *argv: str) -> Measured:
    times = await interleave(
        {"ours": lambda: process(env, *argv), "pass": lambda: process(env, *PASS)}, rounds=41, batch_seconds=0.001
    )
    return Measured(times.ratio("ours", "pass"), note=f"{times.seconds('ours') * 1e3:.1f} ms")


async def imported() -> Measured:
    return await beside_python(dict(os.environ), sys.executable, "-c", "import hookline")


async def helped() -> Measured:
    return await beside_python(dict(os.environ), HOOKLINE, "--help")


async def guarded() -> Measured:
    with service() as env:
        ours = await beside_python(env, *GUARD)
        alone = await beside_python({**env, "HOOKLINE_SERVICE": "0"}, *GUARD)
    return Measured(ours.value, {"without the service": alone.value}, ours.note)


async def crowded() -> Measured:
    """Twenty at once, again and again; the slow ones of all of them."""
    with service() as env, ThreadPoolExecutor(AT_ONCE) as pool:
        loop = asyncio.get_running_loop()
        found: dict[tuple[str, ...], list[float]] = {GUARD: [], PASS: []}
        for _ in range(8):
            for argv, times in found.items():
                times.extend(
                    await asyncio.gather(*(loop.run_in_executor(pool, process, env, *argv) for _ in range(AT_ONCE)))
                )
        lone = median(process(env, *PASS) for _ in range(9))
    ours, base = (sorted(times)[int(len(times) * 0.95)] for times in found.values())
    peers = {"over one python -c pass": ours / lone, f"{AT_ONCE} × python -c pass over one": base / lone}
    return Measured(ours / base, peers, f"{ours * 1e3:.0f} ms")


# ------------------------------------------------------------------------------------- inside the real Claude CLI


def when(kind: str, *hooks: dict[str, Any]) -> list[dict[str, Any]]:
    """Hooks that run for the calls of one kind only, so that kinds can take turns within one session."""
    return [{**hook, "if": f"Bash(true {kind})"} for hook in hooks]


def command(text: str) -> dict[str, Any]:
    return {"type": "command", "command": text}


def starter_in_claude() -> Measured:
    times = in_the_claude_cli()
    peers: dict[str, float | str] = {kind: times.added(kind, "python", over="none") for kind in ("sh", "one guard")}
    note = ", ".join(
        f"{kind} +{times.difference(kind, 'none') * 1e3:.0f} ms" for kind in times.rounds if kind != "none"
    )
    value = times.added("starter", "python", over="none")
    return Measured(value, peers, f"{note}; none {times.seconds('none') * 1e3:.0f} ms a call")


def confined_in_claude() -> Measured:
    """A confined line starts one Python; as much again is for its crew, the shell in it and the longer command."""
    times = in_the_claude_cli()
    together = times.added("confined", "python", over="none")
    return Measured(
        together - times.added("starter", "python", over="none"),
        note=f"{times.difference('confined', 'starter') * 1e3:.0f} ms; with the guards {together:.2g}",
    )


@cache
def in_the_claude_cli() -> Times:
    """Sessions of Bash calls with a scripted model, kinds of hooks in random turns: how long each kind takes.

    `starter` is the starter's guard without its confinement, which is a cost of the line and not of the hook.
    """
    from hookline.cli.commands.init import starter
    from hookline.hosts.claude_code.process import bundled_cli

    cli = bundled_cli()
    if cli is None:
        raise Unavailable("no Claude CLI: pip install claude-agent-sdk")
    [[first]] = [one["hooks"] for one in starter()["PreToolUse"] if one["matcher"] == "Bash"]
    unconfined = first["command"].replace("--confine auto", "--confine off")
    kinds = {
        "none": [],
        "sh": when("sh", command("true")),
        "python": when("python", command(f"{sys.executable} -c pass")),
        "one guard": when("guard", command("hookline guard commands --block 'rm -rf *' --block 'sudo *'")),
        "starter": when("starter", {**first, "command": unconfined}),
        "confined": when("confined", first),
    }
    if unconfined == first["command"]:
        raise Unavailable("the starter confines nothing")
    group = {"matcher": "Bash", "hooks": [hook for hooks in kinds.values() for hook in hooks]}
    settings, chance = {"hooks": {"PreToolUse": [group]}}, random.Random(14)
    with service() as env:
        each = [session(str(cli), settings, env, shuffled(list(kinds), CALLS, chance)) for _ in range(SESSIONS)]
    return Times({kind: [seconds for times in each for seconds in times.rounds[kind]] for kind in kinds})


def session(cli: str, settings: dict[str, Any], env: dict[str, str], turns: list[str]) -> Times:
    """The seconds from each of the model's calls to its next request, by kind of call."""
    api_module = importlib.import_module("tests.contract.api")
    stamps: list[float] = []

    class Api(api_module.Api):  # type: ignore[misc, name-defined]
        def serve_model(self, handler: Any, request: Any) -> None:
            stamps.append(time.perf_counter())
            super().serve_model(handler, request)

    warm_up = list(dict.fromkeys(turns))  # the first call of a kind also starts what it needs
    calls = [["Bash", {"command": f"true {kind.split()[-1]}"}] for kind in (*warm_up, *turns)]
    api = Api([*({"tools": [call]} for call in calls), {"text": "done"}])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "settings.json").write_text(json.dumps(settings))
        (Path(folder) / "home").mkdir()
        try:
            subprocess.run(
                [cli, "-p", "go", "--settings", "settings.json", "--allowedTools", "Bash", "--output-format", "json"],
                cwd=folder, env={**claude_environment(folder, api.port), **kept(env)}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, check=True, timeout=300,
            )  # fmt: skip
        finally:
            api.close()
    gaps = [later - earlier for earlier, later in itertools.pairwise(stamps)][-len(turns) :]
    if len(gaps) < len(turns):
        raise Unavailable(f"the CLI made {len(gaps)} calls of {len(turns)}")
    found: dict[str, list[float]] = {kind: [] for kind in warm_up}
    for kind, gap in zip(turns, gaps, strict=True):
        found[kind].append(gap)
    return Times(found)


def kept(env: dict[str, str]) -> dict[str, str]:
    return {"HOOKLINE_SERVICE": env["HOOKLINE_SERVICE"], "PATH": f"{Path(HOOKLINE).parent}:{os.environ['PATH']}"}


def claude_environment(folder: str, port: int) -> dict[str, str]:
    return {
        "HOME": f"{folder}/home",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "SHELL": shutil.which("bash") or "/bin/sh",
    }
