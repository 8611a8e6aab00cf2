"""Confined lines: what the start of one costs, and what each program in it costs, beside bubblewrap."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import hookline
from bench.harness import Measured, Row, Times, Unavailable, at_most, interleave
from hookline.confine.policy import Policy
from hookline.confine.warm import WarmStarter
from hookline.guards.confining import launcher, unavailable

LAUNCH = Path(hookline.__file__).parent / "confine" / "launch.py"
QUICKEST = [sys.executable, "-I", "-S", str(LAUNCH)]
BLOCK = ["--block", "rm -rf /", "--block", "sudo *"]
STARTS = 1_000
PAUSE = 0.1
TRUE = shutil.which("true") or "/bin/true"


def rows() -> Iterator[Row]:
    yield Row("confine.cold", "a confined `true`, cold", at_most(25, "ms over a bare one"), cold)
    yield Row(
        "confine.service", "a confined `true`, from a program that runs on", at_most(5, "ms over a bare one"), warm
    )
    yield Row("confine.starts", "a program start in a confined line", at_most(1, "ms over a bare one"), starts)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _candidates(folder: str, command: list[str]) -> dict[str, list[str]]:
    if reason := unavailable():
        raise Unavailable(reason)
    flags = ["--write", folder, *BLOCK, "--", *command]
    found = {"bare": command, "ours": [*QUICKEST, *flags], "hookline confine": [*launcher(), *flags]}
    if bwrap := shutil.which("bwrap"):
        found["bubblewrap"] = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--bind", folder, folder, *command]
    return found


async def cold() -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        commands = _candidates(folder, [TRUE])
        times = await interleave(
            {name: partial(_run, *words) for name, words in commands.items()}, rounds=31, batch_seconds=0.03
        )
    over = {name: (times.seconds(name) - times.seconds("bare")) * 1e3 for name in commands if name != "bare"}
    return Measured(over.pop("ours"), over, f"a bare one takes {times.seconds('bare') * 1e3:.1f} ms")


async def warm() -> Measured:
    if reason := unavailable():
        raise Unavailable(reason)
    starter, null = WarmStarter(), os.open(os.devnull, os.O_RDWR)
    try:
        with tempfile.TemporaryDirectory() as folder:
            policy = Policy((folder,), block=tuple(BLOCK[1::2]))
            files = dict.fromkeys((0, 1, 2), null)

            def confined() -> None:
                line = starter.start(policy, [TRUE], cwd=folder, env=os.environ, files=files)
                assert line.exit_code() == 0

            commands = _candidates(folder, [TRUE])
            runs: dict[str, Callable[[], None]] = {"ours": confined}
            runs |= {name: partial(_run, *commands[name]) for name in ("bare", "bubblewrap") if name in commands}
            times = _apart(runs)
    finally:
        starter.close()
        os.close(null)
    over = {name: times.difference(name, "bare") * 1e3 for name in times.rounds if name != "bare"}
    return Measured(over.pop("ours"), over, f"a bare one takes {times.seconds('bare') * 1e3:.1f} ms")


def _apart(runs: dict[str, Callable[[], None]]) -> Times:
    """Each in turn, with a pause: an agent's lines are seconds apart, and what waits for the next one is made in it."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(41):
        for name, run in runs.items():
            time.sleep(PAUSE)
            began = time.perf_counter()
            run()
            if turn:  # the first one starts what the others find
                found[name].append(time.perf_counter() - began)
    return Times(found)


async def starts() -> Measured:
    line = f"for i in {{1..{STARTS}}}; do {TRUE}; done"
    with tempfile.TemporaryDirectory() as folder:
        commands = _candidates(folder, ["bash", "-c", line])
        each = {"bubblewrap each": _each(folder)} if shutil.which("bwrap") else {}
        commands = {**commands, **each}
        times = await interleave(
            {name: partial(_run, *words) for name, words in commands.items()}, rounds=3, batch_seconds=0.1
        )
    bare = times.seconds("bare")
    over = {name: (times.seconds(name) - bare) * 1e3 / STARTS for name in commands if name != "bare"}
    return Measured(over.pop("ours"), over, f"a bare one takes {bare * 1e3 / STARTS:.2f} ms")


def _each(folder: str) -> list[str]:
    """Every program in a bubblewrap of its own: what it takes to judge each of them there."""
    bwrap = f"bwrap --ro-bind / / --dev /dev --bind {folder} {folder} {TRUE}"
    return ["bash", "-c", f"for i in {{1..{STARTS}}}; do {bwrap}; done"]
