"""A thousand machines and one hub, on this computer: how soon a policy is in force, how fast records come in.

The machines are real enrolments with keys, folders and connections of their own, a few hundred to a process; only the
check of a new policy, which is a process for each machine, is left out, because a thousand computers have a thousand
processors for it.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bench.harness import Measured, Row, Unavailable, at_least, at_most

MACHINES = int(os.environ.get("HOOKLINE_BENCH_MACHINES", "1000"))
PER_PROCESS = 250
RECORDS = 100
"""Written by each machine."""
LIMIT = 240.0
"""Seconds for each part; what takes longer counts as failed."""
POLICY = b"from hookline import Hooks\nhooks = Hooks()\n"


def rows() -> Iterator[Row]:
    many = f"{MACHINES:,} machines"
    yield Row("fleet.policy", f"fleet: push → in force on {many}, p99", at_most(30, "s"), policy)
    yield Row("fleet.audit", f"fleet: records from {many}, mirrored", at_least(1_000, "records/s"), audit)
    yield Row("fleet.memory", f"fleet: hub and server with {many}", at_most(500, "MB"), memory)
    yield Row("fleet.call", "fleet: a call on an enrolled machine, hub away", at_most(1.2, "× hub there"), call)


# -- the machines ------------------------------------------------------------------------------------------------------


async def _leaves(folders: list[Path]) -> None:
    """Many machines in one process; each writes when the version in force changed."""
    from hookline.fleet.leaf import Leaf
    from hookline.fleet.machine import Machine

    async def one(folder: Path) -> None:
        await Leaf(Machine(folder), check=lambda policy: []).run()

    await asyncio.gather(*(one(folder) for folder in folders))


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _run(folder: Path) -> dict[str, Any]:
    from hookline.fleet.connection import Server
    from hookline.fleet.hub import Hub

    hub = Hub(folder / "hub", server=Server(folder / "hub", port=_port()))
    machines = _enrolled(hub, folder)
    await hub.start()
    server_pid = (folder / "hub" / "nats.pid").read_text()
    groups = [machines[start : start + PER_PROCESS] for start in range(0, len(machines), PER_PROCESS)]
    argv = [sys.executable, "-m", "bench.rows.fleet"]
    processes = [_started([*argv, *map(str, group)]) for group in groups]
    try:
        connecting = await _until(lambda: _reporting(hub), MACHINES)
        return {
            "connecting": connecting,
            "policy": await _push(hub, machines),
            "audit": await _write(hub, folder),
            "memory": _resident("self") + _resident(server_pid),
            "server": _resident(server_pid),
        }
    finally:
        for process in processes:
            process.kill()
            process.wait()
        await hub.stop()


def _started(argv: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stderr=subprocess.DEVNULL)


def _enrolled(hub: Any, folder: Path) -> list[Path]:
    """Every machine as `join` leaves it, its log in a folder of its own, as on a computer of its own.

    The server is told of all of them when it starts.
    """
    from hookline.fleet.machine import Enrolment, Machine
    from hookline.fleet.members import MachineKey

    folders = []
    for number in range(MACHINES):
        key, place = MachineKey.generate(), folder / f"m{number}"
        secret = hub.folder.registry.token(hub.folder.key.public).split(".")[1]
        member = hub.folder.registry.enrol(secret, key.public, f"machine {number}")
        enrolment = Enrolment(
            machine=member.machine,
            name=member.name,
            hub=hub.url,
            team=hub.folder.key.public,
            audit=f"{place}/audit.jsonl",
        )
        Machine(place).enrol(enrolment, key.seed)
        folders.append(place)
    return folders


async def _reporting(hub: Any) -> int:
    info = await hub.admin.js.stream_info("KV_hookline_status")
    return int(info.state.messages)


async def _until(ready: Any, count: int) -> float:
    began = time.monotonic()
    while await ready() < count:
        if time.monotonic() - began > LIMIT:
            raise TimeoutError(f"{await ready():,} of {count:,} within {LIMIT:.0f} s")
        await asyncio.sleep(0.1)
    return time.monotonic() - began


async def _push(hub: Any, machines: list[Path]) -> list[float]:
    """Seconds from the push until each machine has the policy in force, by the time of the file that says so."""
    began = time.time()
    await hub.admin.push({"hooks.py": POLICY})

    async def done() -> int:
        return sum((place / "current.json").exists() for place in machines)

    await _until(done, len(machines))
    return sorted((place / "current.json").stat().st_mtime - began for place in machines)


async def _write(hub: Any, folder: Path) -> tuple[int, float]:
    """Records on every machine, and the seconds until the hub has them all on its disk."""
    from hookline.records.audit import AuditFile

    record = {"event": "PreToolUse", "tool": "Bash", "decision": "pass", "pad": "x" * 400}
    began = time.monotonic()
    for number in range(MACHINES):
        AuditFile(folder / f"m{number}/audit.jsonl").append([record] * RECORDS)
        await asyncio.sleep(0)
    ledger, whole = hub.folder.ledger, set[str]()

    async def mirrored() -> int:
        left = set(ledger.machines()) - whole
        whole.update(machine for machine in left if ledger.mirror(machine).last.seq == RECORDS)
        return len(whole)

    await _until(mirrored, MACHINES)
    return MACHINES * RECORDS, time.monotonic() - began


def _resident(process: str) -> float:
    """Megabytes."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


@cache
def _result() -> dict[str, Any]:
    try:
        import nats  # noqa: F401

        from hookline.errors import FleetError
        from hookline.fleet.connection import find_server
    except ImportError as missing:
        raise Unavailable(f"{missing.name} is not installed") from None
    try:
        find_server()
    except FleetError as missing:
        raise Unavailable(str(missing)) from None
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_run(Path(name)))


def policy() -> Measured:
    took = _result()["policy"]
    p99 = took[int(len(took) * 0.99) - 1]
    return Measured(p99, note=f"median {took[len(took) // 2]:.1f} s; all connected in {_result()['connecting']:.0f} s")


def audit() -> Measured:
    count, seconds = _result()["audit"]
    return Measured(count / seconds, note=f"{count:,} records of 0.7 kB in {seconds:.0f} s, written, sent, on the disk")


def memory() -> Measured:
    return Measured(_result()["memory"], note=f"the server {_result()['server']:.0f} MB of it")


# -- one call ----------------------------------------------------------------------------------------------------------


def call() -> Measured:
    """`hookline guard` on an enrolled machine: its hub behind an address that nothing answers, and on this computer."""
    from hookline.fleet.machine import Enrolment, Machine

    event = {
        "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": "/", "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }  # fmt: skip
    argv = [sys.executable, "-m", "hookline.cli.main", "guard", "commands", "--block", "sudo *"]
    with tempfile.TemporaryDirectory() as name, socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        there.listen()
        hubs = {"there": f"nats://127.0.0.1:{there.getsockname()[1]}", "away": "nats://192.0.2.1:4222"}
        times: dict[str, list[float]] = {kind: [] for kind in hubs}
        for kind, url in hubs.items():
            enrolment = Enrolment(machine="m", name="m", hub=url, team="k", audit=f"{name}/{kind}.jsonl")
            Machine(Path(name, kind, "hookline", "fleet")).enrol(enrolment, "SU")
        for _ in range(9):
            for kind in hubs:
                env = {**os.environ, "XDG_STATE_HOME": f"{name}/{kind}", "HOOKLINE_SERVICE": "0"}
                began = time.perf_counter()
                subprocess.run(argv, input=json.dumps(event).encode(), env=env, capture_output=True, check=True)
                times[kind].append(time.perf_counter() - began)
    there_ms, away_ms = (min(times[kind]) * 1000 for kind in ("there", "away"))
    return Measured(
        away_ms / there_ms, note=f"{away_ms:.0f} ms and {there_ms:.0f} ms, the best of nine new processes each"
    )


if __name__ == "__main__":
    asyncio.run(_leaves([Path(name) for name in sys.argv[1:]]))
