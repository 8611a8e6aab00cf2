"""A fleet that is killed again and again: hub, server and machines, while audit records are written everywhere.

`python -m tests.fleet.faults FOLDER --machines 20 --records 100000 --kills 200` is the whole run; the suite runs a
small one. The parts are processes of their own (`hub`, `leaves`, `writer`), so that SIGKILL is what it is in life.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from hookline.audit import AuditFile
from hookline.audit.chain import link_of
from hookline.fleet.hub import Hub
from hookline.fleet.leaf import Leaf, join
from hookline.fleet.ledger import Ledger
from hookline.fleet.machine import Machine
from hookline.fleet.server import Server

PATIENCE = 300.0


class Report(msgspec.Struct, kw_only=True):
    """What came of it."""

    written: int = 0
    mirrored: int = 0
    kills: int = 0
    seconds: float = 0.0
    catching_up: float = 0.0
    removed: str = ""
    """What the hub said of a record that was taken out of one machine's log before it was sent."""
    wrong: list[str] = []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# -- the parts -------------------------------------------------------------------------------------------------------


async def run_hub(folder: Path, port: int) -> None:
    hub = Hub(folder, server=Server(folder, port=port))
    await hub.start()
    (folder / "up").touch()
    await asyncio.Event().wait()


async def run_leaves(folders: list[Path]) -> None:
    await asyncio.gather(*(Leaf(Machine(folder)).run() for folder in folders))


def write_records(logs: list[Path], count: int) -> None:
    """Records in small batches, in turn, as agents that work on all machines would write them."""
    number = sum(len(lines_of(path)) for path in logs)  # a writer that was killed goes on
    while number < count:
        for path in logs:
            batch = min(random.randint(1, 40), count - number)
            AuditFile(path, max_bytes=2 << 20).append(
                {"event": "PreToolUse", "number": number + one, "pad": "x" * 300} for one in range(batch)
            )
            number += batch
            if number >= count:
                return
        time.sleep(0.002)  # paced: the faults should find work under way


# -- the run ---------------------------------------------------------------------------------------------------------


class Fleet:
    """All processes of one run."""

    def __init__(self, folder: Path, machines: int) -> None:
        self.folder = folder
        self.hub = folder / "hub"
        self.hub.mkdir(parents=True)
        self.port = free_port()
        self.machines = [folder / f"machine{number}" for number in range(machines)]
        self.logs = [folder / f"machine{number}.jsonl" for number in range(machines)]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.groups = [self.machines[start::4] for start in range(min(4, machines))]

    def start(self, name: str) -> None:
        """Start one part, or start it again."""
        if name == "hub":
            argv = ["hub", str(self.hub), str(self.port)]
        elif name == "writer":
            argv = ["writer", *map(str, self.logs)]
        else:
            argv = ["leaves", *map(str, self.groups[int(name.removeprefix("leaves"))])]
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.fleet.faults", *argv], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def kill(self, name: str) -> None:
        """SIGKILL one part; `server` is the hub's NATS server."""
        if name == "server":
            with suppress(ProcessLookupError):
                os.kill(int((self.hub / "nats.pid").read_text()), signal.SIGKILL)
            name = "hub"  # a hub whose server is gone is started again
        if name == "writer" and self.processes[name].poll() is not None:
            return  # it has written all
        self.processes[name].kill()
        self.processes[name].wait()
        self.start(name)

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        Server(self.hub, port=self.port)._end_orphan()

    async def enrol(self) -> None:
        """Let every machine in, with a hub in this process."""
        hub = Hub(self.hub, server=Server(self.hub, port=self.port))
        await hub.start()
        for folder, log in zip(self.machines, self.logs, strict=True):
            token = hub.registry.token(hub.key.public)
            await join(hub.url, token, machine=Machine(folder), name=folder.name, audit=str(log))
        await hub.stop()


@contextmanager
def running(folder: Path, machines: int) -> Iterator[Fleet]:
    fleet = Fleet(folder, machines)
    try:
        asyncio.run(fleet.enrol())
        for name in ("hub", *(f"leaves{number}" for number in range(len(fleet.groups)))):
            fleet.start(name)
        yield fleet
    finally:
        fleet.stop()


def play(folder: Path, *, machines: int, records: int, kills: int, seed: int = 1) -> Report:
    """Write, kill, let it catch up, and look."""
    random.seed(seed)
    report, began = Report(), time.monotonic()
    with running(folder, machines) as fleet:
        os.environ["FAULTS_RECORDS"] = str(records)
        fleet.start("writer")
        names = ["hub", "server", "writer", *(f"leaves{number}" for number in range(len(fleet.groups)))]
        for _ in range(kills):
            time.sleep(random.uniform(0.05, 0.6))
            fleet.kill(random.choice(names))
            report.kills += 1
        fleet.processes["writer"].wait()
        ended = time.monotonic()
        report.wrong = caught_up(fleet)
        report.catching_up = time.monotonic() - ended
        compare(fleet, report)
        report.removed = remove_one(fleet)
    report.seconds = time.monotonic() - began
    return report


def remove_one(fleet: Fleet) -> str:
    """Write three records on the first machine, take the middle one out unsent, and hear what the hub says."""
    log, leaves = fleet.logs[0], fleet.processes["leaves0"]
    leaves.kill()
    leaves.wait()
    AuditFile(log).append({"event": "PreToolUse", "number": number} for number in range(3))
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:-2], lines[-1]]))
    fleet.start("leaves0")
    until = time.monotonic() + PATIENCE
    while not (problems := Ledger(fleet.hub / "audit").problems()) and time.monotonic() < until:
        time.sleep(0.2)
    return "; ".join(map(str, problems)) or "the hub found nothing"


def lines_of(log: Path) -> list[bytes]:
    """A log as it was written, through rotated files."""
    files = [*AuditFile(log).rotated(), log]
    return [line for path in files if path.exists() for line in path.read_bytes().splitlines(keepends=True)]


def mirrors(fleet: Fleet) -> dict[Path, Path]:
    """Which mirror belongs to which log."""
    ledger = Ledger(fleet.hub / "audit")
    return {
        log: ledger.mirror(Machine(folder).enrolment().machine).path
        for folder, log in zip(fleet.machines, fleet.logs, strict=True)
    }


def caught_up(fleet: Fleet) -> list[str]:
    """Wait until every mirror ends with its log's last record."""
    until = time.monotonic() + PATIENCE
    waiting = mirrors(fleet)
    while waiting and time.monotonic() < until:
        for log, mirror in list(waiting.items()):
            last = link_of(lines_of(log)[-1])
            written = mirror.read_bytes().splitlines(keepends=True)[-1:] if mirror.exists() else []
            if written and link_of(written[0]) == last:
                del waiting[log]
        time.sleep(0.2)
    return [f"{log.name}: the hub never caught up" for log in waiting]


def compare(fleet: Fleet, report: Report) -> None:
    """Nothing lost, nothing twice, nothing changed, every chain whole."""
    for log, mirror in mirrors(fleet).items():
        written = lines_of(log)
        mirrored = mirror.read_bytes().splitlines(keepends=True) if mirror.exists() else []
        report.written += len(written)
        report.mirrored += len(mirrored)
        if written != mirrored:
            report.wrong.append(f"{log.name}: {len(written)} records written, {len(mirrored)} mirrored, not the same")
        report.wrong += [str(one) for one in AuditFile(mirror).verify()]
    report.wrong += [str(one) for one in Ledger(fleet.hub / "audit").problems()]


def main(argv: list[str]) -> int:
    """A part of a run, or a whole one."""
    if argv[0] == "hub":
        asyncio.run(run_hub(Path(argv[1]), int(argv[2])))
    elif argv[0] == "leaves":
        asyncio.run(run_leaves([Path(name) for name in argv[1:]]))
    elif argv[0] == "writer":
        write_records([Path(name) for name in argv[1:]], int(os.environ["FAULTS_RECORDS"]))
    else:
        flags = argparse.ArgumentParser(prog="python -m tests.fleet.faults", description=__doc__)
        flags.add_argument("folder", type=Path)
        flags.add_argument("--machines", type=int, default=20)
        flags.add_argument("--records", type=int, default=100_000)
        flags.add_argument("--kills", type=int, default=200)
        args = flags.parse_args(argv)
        report = play(args.folder, machines=args.machines, records=args.records, kills=args.kills)
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return 1 if report.wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
