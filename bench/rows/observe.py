"""What watching costs: the audit log and metrics on the agent's path, and how fast records are replayed."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import NEXT_TO_NOTHING, Measured, Row, at_least, at_most, at_most_surely, rotated
from hookline import Hooks, deny
from hookline.events import PreToolUse
from hookline.records.audit.log import AuditLog
from hookline.records.replay.compare import replay
from hookline.records.telemetry import Metrics

EVENTS = 200  # fired in a row, within one batch of the audit log
ROUNDS = 60


def rows() -> Iterator[Row]:
    yield Row("observe.audit", "audit (batched): what it adds to one event", at_most(20, "µs"), audit)
    yield Row("observe.checkpoints", "checkpoints: what they add to one recorded event", at_most(2, "µs"), checkpoints)
    yield Row("observe.push", "push to a receiver: what it adds to one recorded event", at_most(2, "µs"), pushed)
    yield Row("observe.metrics", "metrics (inline): what they add to one event", at_most(20, "µs"), metrics)
    yield Row("observe.replay", "replay of transcripts, two processes", at_least(50_000, "events/s"), replayed)


async def audit() -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        log = AuditLog(Path(folder, "audit.jsonl"))
        added, plain = await _added(log, log.flush)
        start = time.perf_counter()
        hooks = _watched(log)
        for event in _events(2000):
            await hooks.fire(event)
        log.close()
        whole = (time.perf_counter() - start) / 2000 * 1e6
    return Measured(added, note=f"{plain:.2g} µs without; {whole:.0f} µs until written, without a pause")


async def checkpoints() -> Measured:
    """With and without in turns; a checkpoint for every 100 records, which is ten times as often as usual."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        plain = AuditLog(Path(folder, "plain.jsonl"))
        signed = AuditLog(Path(folder, "signed.jsonl"), checkpoints=100)
        added, without = await _added(signed, lambda: (plain.flush(), signed.flush()), plain)
        assert signed.checkpoints is not None
        signed.file.append([{"event": "PreToolUse", "n": number} for number in range(1_000)])
        start = time.perf_counter()
        signed.checkpoints.update()
        took = (time.perf_counter() - start) * 1e3
        plain.close()
        signed.close()
    return Measured(
        added, note=f"{without:.2g} µs without; a checkpoint over 1,000 more records {took:.1f} ms, elsewhere"
    )


def pushed() -> Measured:
    """With a process that follows the log, and without, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        plain, sent, out = (
            AuditLog(Path(folder, "plain.jsonl")),
            AuditLog(Path(folder, "sent.jsonl")),
            Path(folder, "out"),
        )
        sent.file.append([])
        words = ("audit", "push", str(sent.file.path), "--to", f"file:{out}", "--follow", "--until-eof")
        env = {**os.environ, "XDG_STATE_HOME": folder}
        with subprocess.Popen([sys.executable, "-m", "hookline", *words], stdin=subprocess.PIPE, env=env) as follower:
            added, without = asyncio.run(_added(sent, lambda: (plain.flush(), sent.flush()), plain))
            while not out.exists() or out.stat().st_size < sent.file.path.stat().st_size:
                time.sleep(0.05)
            follower.communicate()
        plain.close()
        sent.close()
    return Measured(added, note=f"{without:.2g} µs without; {EVENTS * ROUNDS:,} records arrived")


async def metrics() -> Measured:
    counted = Metrics()
    added, plain = await _added(counted, lambda: None)
    return Measured(added, note=f"{plain:.2g} µs without")


async def _guard(event: PreToolUse) -> Any:
    return deny("no") if "sudo" in event.tool_input["command"] else None


def _watched(observer: Any) -> Hooks:
    hooks = Hooks()
    hooks.on(PreToolUse, match="Bash")(_guard)
    if observer is not None:
        hooks.observe(observer, inline=True)
    return hooks


def _events(count: int = EVENTS) -> list[PreToolUse]:
    commands = (f"cd /srv/project && grep -rn 'needle {n}' src | head -{n}" for n in range(count))
    inputs = ({"command": command, "description": "Look for it"} for command in commands)
    return [
        PreToolUse(session_id="s", cwd="/srv/project", tool_name="Bash", tool_input=given, tool_use_id="t")
        for given in inputs
    ]


async def _added(observer: Any, rest: Callable[[], Any], base: Any = None) -> tuple[float, float]:
    """Microseconds that an observer adds to one event: with and without it in turns, and what it does later apart.

    With a `base`, what it adds to that one's. Where that may be nothing, it is the most that it can be.
    """
    sets, events = {"plain": _watched(base), "watched": _watched(observer)}, _events()
    differences, without = [], []
    for turn in range(ROUNDS):
        took = {}
        for name in rotated(list(sets), turn):
            start = time.perf_counter()
            for event in events:
                await sets[name].fire(event)
            took[name] = (time.perf_counter() - start) / EVENTS * 1e6
            rest()
        differences.append(took["watched"] - took["plain"])
        without.append(took["plain"])
    added = median(differences)
    return added if added > 0 else max(at_most_surely(differences), NEXT_TO_NOTHING), median(without)


def _make_hooks() -> Hooks:
    return _watched(None)


def transcript(path: Path, megabytes: float) -> int:
    """Write a transcript as Claude Code would; how many calls are in it."""
    count = 0
    base = {"sessionId": "5b0d", "cwd": "/srv/project", "version": "2.1", "gitBranch": "main", "userType": "external"}
    with path.open("w") as file:
        while file.tell() < megabytes * 1e6:
            count += 1
            call = f"toolu_{count}"
            command = f"sudo rm {count}" if count % 50 == 0 else f"grep -rn 'needle {count}' src | head"
            use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command, "description": "Look"}}
            said = {"id": f"msg_{count}", "type": "message", "role": "assistant", "model": "m", "content": [use]}
            result = {
                "type": "tool_result",
                "tool_use_id": call,
                "content": "src/a.py:12: needle\n" * 10,
                "is_error": False,
            }
            file.write(json.dumps({**base, "type": "assistant", "message": said}) + "\n")
            file.write(json.dumps({**base, "type": "user", "message": {"role": "user", "content": [result]}}) + "\n")
    return count


def replayed() -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "transcript.jsonl")
        transcript(path, 40)
        both = max(_rate(path, 2, time.perf_counter) for _ in range(3))
        one = max(_rate(path, 1, time.process_time) for _ in range(3))
    return Measured(both, note=f"{one:,.0f} per second of one core's time; {os.cpu_count()} cores here")


def _rate(path: Path, jobs: int, clock: Callable[[], float]) -> float:
    start = clock()
    report = replay([path], _make_hooks, jobs=jobs)
    return report.calls / (clock() - start)


if __name__ == "__main__":
    print(asyncio.run(audit()))
