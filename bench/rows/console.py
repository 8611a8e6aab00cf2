"""The console on a log of a million events: how fast it is indexed, how soon a page is there, whether live keeps up."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import msgspec

from bench.harness import Measured, Row, Unavailable, at_least, at_most

EVENTS = 1_000_000
LIVE_RATE = 500
LIVE_SECONDS = 5
TOOLS = ("Bash",) * 5 + ("Read",) * 3 + ("Edit",) * 2 + ("Write", "Grep", "Glob", "WebFetch", "mcp__db__query")


def rows() -> Iterator[Row]:
    yield Row("console.index", "console: a log of a million events, indexed", at_least(50_000, "events/s"), indexed)
    yield Row("console.memory", "console: memory while it is indexed", at_most(300, "MB"), memory)
    yield Row("console.page", "console: the slowest first page of any filter, then", at_most(300, "ms"), pages)
    yield Row("console.live", f"console: how far behind at {LIVE_RATE} events/s", at_most(1_000, "ms"), live)


def write_log(path: Path, count: int) -> None:
    """A month of an agent's work, as the audit log writes it; the hashes are not real ones."""
    dice = Random(7)
    with path.open("wb") as file:
        for number in range(1, count + 1):
            file.write(msgspec.json.encode(_record(number, count, dice)) + b"\n")


def _record(number: int, count: int, dice: Random) -> dict[str, Any]:
    moment = datetime.fromtimestamp(1_780_000_000 + 30 * 86_400 * number / count, UTC)
    event = ("PreToolUse", "PostToolUse", "PreToolUse", "PostToolBatch")[number % 4]
    tool = "" if event == "PostToolBatch" else dice.choice(TOOLS)
    made: dict[str, Any] = {
        "seq": number, "prev": f"{number - 1:064x}", "time": moment.isoformat(timespec="milliseconds"),
        "run": f"session-{number // 200:08}", "user": "ada", "cwd": "/srv/project", "event": event, "decision": "pass",
        "blocked": False, "ms": 0.0, "mode": "default",
    }  # fmt: skip
    if tool:
        command = f"cd /srv/project && grep -rn 'needle {number}' src | head -20"
        given = {"command": command, "description": "Look for it"}
        made |= {"subject": tool, "tool": tool, "tool_use_id": f"toolu_{number // 2}", "input": given}
    if event == "PostToolUse":
        made |= {
            "result": {"stdout": "src/a.py:12: needle\n" * 4, "stderr": "", "interrupted": False},
            "duration_ms": 12,
        }
    if event == "PreToolUse" and tool != "Glob":
        made |= _judged(dice)
    return {**made, "hash": f"{number:064x}"}


def _judged(dice: Random) -> dict[str, Any]:
    """What two hooks said: one call of fifty is denied."""
    hooks = [
        {"hook": name, "status": "ok", "ms": round(dice.lognormvariate(-2, 1.2), 3)}
        for name in ("commands.block", "paths.stay_inside")
    ]
    if dice.random() >= 0.02:
        return {"hooks": hooks}
    hooks[0]["decision"] = "deny"
    reasons = ["`sudo x` is blocked by the pattern `sudo *`"]
    return {"hooks": hooks, "decision": "deny", "blocked": True, "by": "commands.block", "reasons": reasons}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """The log, written once for all rows; it goes with the process."""
    made = tempfile.TemporaryDirectory()
    write_log(Path(made.name, "audit.jsonl"), EVENTS)
    return made


_INDEX = """
import resource, sys, time
from pathlib import Path
from hookline.records.console.index import LogIndex
log, index = map(Path, sys.argv[1:])
wall, cpu = time.perf_counter(), time.process_time()
count = LogIndex(index, [log]).refresh()
print(count, time.perf_counter() - wall, time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@cache
def _build() -> tuple[float, float, float]:
    """Index the log in a process of its own: events per second, the same of one core's time, megabytes."""
    folder = Path(_folder().name)
    argv = [sys.executable, "-c", _INDEX, str(folder / "audit.jsonl"), str(folder / "index.sqlite")]
    count, wall, cpu, kilobytes = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return int(count) / float(wall), int(count) / float(cpu), int(kilobytes) / 1024


def indexed() -> Measured:
    rate, own, _ = _build()
    folder = Path(_folder().name)
    sizes = ", ".join(
        f"{(folder / name).stat().st_size / 1e6:,.0f} MB {name}" for name in ("audit.jsonl", "index.sqlite")
    )
    return Measured(rate, note=f"{own:,.0f} per second of one core's time; {sizes}")


def memory() -> Measured:
    return Measured(_build()[2], note="the most that was resident")


def pages() -> Measured:
    """Every filter, alone and with another, and what a page shows beside the list: the slowest median of three."""
    from hookline.records.console.index import LogIndex
    from hookline.records.console.store import Filter, LogStore

    _build()
    folder = Path(_folder().name)
    index = LogIndex(folder / "index.sqlite", [folder / "audit.jsonl"])
    index.refresh()
    store = LogStore(index)
    asked: list[dict[str, Any]] = [
        {}, {"verdict": ("deny",)}, {"verdict": ("ask",)}, {"tool": "Bash"}, {"tool": "Glob", "verdict": ("deny",)},
        {"tool": "Bash", "event": "PostToolBatch"}, {"hook": "commands.block"}, {"hook": "no such hook"},
        {"session": "session-00002500"}, {"failed": True}, {"unseen": True}, {"text": "needle 500"},
        {"text": "nowhere to be found"}, {"text": "needle", "verdict": ("deny",)},
        {"since": 1_780_500_000_000, "until": 1_781_000_000_000, "tool": "Write"},
    ]  # fmt: skip
    took = {str(wanted): _page_ms(store, Filter(**wanted)) for wanted in asked}
    index.close()
    slowest = max(took, key=lambda wanted: took[wanted])
    return Measured(took[slowest], note=f"{slowest or 'no filter'}; without a filter {took['{}']:.1f} ms")


def _page_ms(store: Any, wanted: Any) -> float:
    def once() -> float:
        start = time.perf_counter()
        store.page(wanted, "", 100)
        return (time.perf_counter() - start) * 1000

    return median(once() for _ in range(3))


# -- live --------------------------------------------------------------------------------------------------------------


@contextmanager
def _console(folder: Path) -> Iterator[str]:
    """A console as a real process; its address."""
    argv = [sys.executable, "-m", "hookline", "console", "audit.jsonl", "--no-open", "--index", "index.sqlite"]
    process = subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(folder)}
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[1]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def live() -> Measured:
    """Write with the audit log's own writer, read as a page does, and compare the times."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as missing:
        raise Unavailable(f"{missing.name} is not installed") from None
    from hookline.records.audit.log_file import AuditFile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = AuditFile(folder / "audit.jsonl")
        log.append([{"event": "SessionStart", "decision": "pass", "time": datetime.now(UTC).isoformat()}])
        with _console(folder) as address:
            answer = _stream(address)
            writer = threading.Thread(target=_write, args=(log,))
            writer.start()
            late, missed = _lateness(answer, LIVE_RATE * LIVE_SECONDS)
            writer.join()
    late.sort()
    p99 = late[int(len(late) * 0.99)]
    return Measured(p99, note=f"p99; median {median(late):.0f} ms; {len(late):,} events shown, {missed} only counted")


def _stream(address: str) -> HTTPResponse:
    url, _, ticket = address.partition("#ticket=")
    host = url.removeprefix("http://").rstrip("/")
    connection = HTTPConnection(host, timeout=60)
    connection.request("POST", "/api/login", ticket)
    token = json.loads(connection.getresponse().read())["token"]
    connection.request("GET", "/api/live?after=1", headers={"Authorization": f"Bearer {token}"})
    return connection.getresponse()


def _write(log: Any) -> None:
    """So many records a second, a few at a time, each with the time it was written."""
    at_once, start = 10, time.monotonic()
    for batch in range(LIVE_RATE * LIVE_SECONDS // at_once):
        time.sleep(max(start + batch * at_once / LIVE_RATE - time.monotonic(), 0))
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        hooks = [{"hook": "guard", "status": "ok", "ms": 0.2}]
        record = {
            "time": stamp,
            "run": "live",
            "event": "PreToolUse",
            "tool": "Bash",
            "decision": "pass",
            "hooks": hooks,
        }
        log.append([{**record, "hooks": hooks, "input": {"command": f"echo {batch}"}} for _ in range(at_once)])


def _lateness(answer: HTTPResponse, count: int) -> tuple[list[float], int]:
    """How long after it was written each event arrived, in milliseconds; and how many were only counted."""
    late: list[float] = []
    missed = 0
    while len(late) + missed < count:
        line = answer.readline()
        if line.startswith(b"data: "):
            now = time.time() * 1000
            batch = json.loads(line[6:])
            late += [now - row["time"] for row in batch.get("rows", ())]
            missed += batch.get("skipped", 0)
    return late, missed
