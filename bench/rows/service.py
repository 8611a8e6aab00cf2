"""The service: what a `hookline …` command hook costs, beside the start of Python itself."""

import asyncio
import contextlib
import importlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import Measured, Row, Unavailable, at_most, interleave

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
CALLS = 25


def rows() -> Iterator[Row]:
    yield Row("service.import", "`import hookline`", at_most(4, UNIT), imported)
    yield Row("service.help", "`hookline --help`", at_most(4, UNIT), helped)
    yield Row("service.guard", "`hookline guard commands`, second run on", at_most(1.5, UNIT), guarded)
    yield Row(
        "service.crowd", f"the same, {AT_ONCE} at once, p95", at_most(4, f"{UNIT}, {AT_ONCE} at once, p95"), crowded
    )
    yield Row(
        "service.claude", "the starter guards inside the real Claude CLI, per tool call",
        at_most(1.3, "× what a `python -c pass` hook adds"), in_the_claude_cli,
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


def command(text: str) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": text}]}]}}


def in_the_claude_cli() -> Measured:
    """Sessions of 25 Bash calls with a scripted model: what each kind of hook adds to a call."""
    from hookline.cli.commands.init import STARTER
    from hookline.hosts.claude_code.find import bundled_cli

    cli = bundled_cli()
    if cli is None:
        raise Unavailable("no Claude CLI: pip install claude-agent-sdk")
    plain = "hookline guard commands --block 'rm -rf *' --block 'sudo *' "
    kinds = {
        "none": {},
        "sh": command("true"),
        "python": command(f"{sys.executable} -c pass"),
        "one guard": command(plain),
        "starter": STARTER,
    }
    calls: dict[str, list[float]] = {kind: [] for kind in kinds}
    with service() as env:
        for _ in range(3):
            for kind, settings in kinds.items():
                calls[kind] += session(str(cli), settings, env)
    seconds = {kind: median(found) for kind, found in calls.items()}
    added = {kind: found - seconds["none"] for kind, found in seconds.items() if kind != "none"}
    peers: dict[str, float | str] = {kind: added[kind] / added["python"] for kind in ("sh", "one guard")}
    note = ", ".join(f"{kind} +{found * 1e3:.0f} ms" for kind, found in added.items())
    return Measured(added["starter"] / added["python"], peers, f"{note}; none {seconds['none'] * 1e3:.0f} ms a call")


def session(cli: str, settings: dict[str, Any], env: dict[str, str]) -> list[float]:
    """The seconds from each of the model's calls to its next request."""
    api_module = importlib.import_module("tests.contract.api")
    stamps: list[float] = []

    class Api(api_module.Api):  # type: ignore[misc, name-defined]
        def serve_model(self, handler: Any, request: Any) -> None:
            stamps.append(time.perf_counter())
            super().serve_model(handler, request)

    api = Api([*([{"tools": [["Bash", {"command": "true"}]]}] * CALLS), {"text": "done"}])
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
    gaps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
    if len(gaps) < CALLS:
        raise Unavailable(f"the CLI made {len(gaps)} calls of {CALLS}")
    return gaps[-CALLS + 1 :]  # the first call also starts what it needs


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
