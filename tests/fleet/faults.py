"""A fleet that is killed again and again: hub, server, services and leaves, while audit records are written everywhere.

`python -m tests.fleet.faults FOLDER --machines 20 --records 100000 --kills 200` is the whole run; the suite runs a
small one. Every machine is what people have: commands as hooks, which start a resident service, which keeps a leaf. Hub
and writer are processes of their own, so that SIGKILL is what it is in life.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from hookline.fleet.connection import Server
from hookline.fleet.hub import Hub
from hookline.fleet.leaf import join
from hookline.fleet.ledger import Ledger
from hookline.records.audit import AuditFile
from hookline.records.audit.chain import link_of
from tests.fleet.machines import Agents, Laptop, left_behind

PATIENCE = 300.0
FAULTS = ("hub", "server", "leaf", "service KILL", "service TERM")
"""What is killed, each as often as the others; `server` is the hub's NATS server."""
BESIDES = ("writer", "client", "worker")
"""What is killed besides, and not counted among the faults asked for."""
AT_ONCE = 4
"""Events under way at once."""


class Report(msgspec.Struct, kw_only=True):
    """What came of it."""

    machines: int = 0
    written: int = 0
    mirrored: int = 0
    events: int = 0
    """Records that were written because an agent asked, through the client, and was answered."""
    by_service: int = 0
    """How many of these a service answered, at least; the others came while it was away, and the client did."""
    judged_again: int = 0
    """Events with a second record: their process was lost after it had judged, or too slow."""
    kills: dict[str, int] = {}
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


def write_records(logs: list[Path]) -> None:
    """Records in small batches, in turn, until there are as many in all as the last line of stdin says."""
    number = sum(len(lines_of(path)) for path in logs)  # a writer that was killed goes on
    turn = itertools.cycle(logs)
    for goal in map(int, sys.stdin):
        while number < goal:
            batch = min(random.randint(1, 40), goal - number)
            AuditFile(next(turn), max_bytes=2 << 20).append(
                {"event": "PreToolUse", "number": number + one, "pad": "x" * 300} for one in range(batch)
            )
            number += batch


# -- the run ---------------------------------------------------------------------------------------------------------


class Fleet:
    """All processes of one run."""

    def __init__(self, folder: Path, machines: int) -> None:
        self.folder = folder.resolve()
        self.hub = self.folder / "hub"
        self.hub.mkdir(parents=True)
        self.port = free_port()
        names = [f"faults-{os.getpid()}-{number}" for number in range(machines)]
        self.laptops = [Laptop(self.folder / name, name) for name in names]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.goal = 0

    def start(self, name: str) -> None:
        """Start the hub or the writer, or start it again."""
        rest = [str(self.hub), str(self.port)] if name == "hub" else [str(one.log) for one in self.laptops]
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.fleet.faults", name, *rest],
                stdout=log, stderr=log, stdin=subprocess.PIPE,
            )  # fmt: skip
        if name == "writer":
            self.write(self.goal)

    def write(self, goal: int) -> None:
        """Have the writer go on until there are so many records."""
        self.goal = goal
        stdin = self.processes["writer"].stdin
        assert stdin is not None
        stdin.write(f"{goal}\n".encode())
        stdin.flush()

    def kill(self, name: str) -> bool:
        """Kill one part, wherever it is found; False if it is nowhere at the moment."""
        if name == "client":
            for process in [one for laptop in self.laptops for one in tuple(laptop.asking)][:1]:
                process.kill()
                return True
            return False
        if name in ("hub", "server", "writer"):
            self._kill_part(name)
            return True
        return any(laptop.kill(name) for laptop in random.sample(self.laptops, len(self.laptops)))

    def _kill_part(self, name: str) -> None:
        if name == "server":
            with suppress(OSError, ValueError):
                os.kill(int((self.hub / "nats.pid").read_text()), signal.SIGKILL)
            name = "hub"  # a hub whose server is gone is started again
        self._end(self.processes[name])
        self.start(name)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.communicate()

    def stop(self) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(Laptop.close, self.laptops))
        for process in self.processes.values():
            self._end(process)
        Server(self.hub, port=self.port)._end_orphan()

    async def enrol(self) -> None:
        """Let every machine in, with a hub in this process."""
        hub = Hub(self.hub, server=Server(self.hub, port=self.port))
        await hub.start()
        for laptop in self.laptops:
            token = hub.folder.registry.token(hub.folder.key.public)
            await join(hub.url, token, machine=laptop.machine, name=laptop.name, audit=str(laptop.log))
        await hub.stop()


@contextmanager
def running(folder: Path, machines: int) -> Iterator[Fleet]:
    fleet = Fleet(folder, machines)
    try:
        asyncio.run(fleet.enrol())
        fleet.start("hub")
        fleet.start("writer")
        yield fleet
    finally:
        fleet.stop()


def play(folder: Path, *, machines: int, records: int, kills: int, pace: int = 12, seed: int = 1) -> Report:
    """Write, kill, let it catch up, and look; `pace` is the most events between two kills."""
    random.seed(seed)
    report, began = Report(machines=machines), time.monotonic()
    with running(folder, machines) as fleet:
        with Agents(fleet.laptops, AT_ONCE) as agents:
            report.kills = strike(fleet, agents, records, kills, pace)
        ended = time.monotonic()
        writer = fleet.processes["writer"]
        writer.communicate()
        report.wrong += [] if writer.returncode == 0 else ["the writer failed"]
        numbers = itertools.count(agents.asked)
        for laptop in fleet.laptops:
            laptop.come_back(numbers)
        report.wrong += caught_up(fleet)
        report.catching_up = time.monotonic() - ended
        compare(fleet, report)
        report.removed = remove_one(fleet, next(numbers))
    report.by_service = sum(laptop.by_service for laptop in fleet.laptops)
    report.wrong += left_behind(fleet.folder, [laptop.name for laptop in fleet.laptops])
    report.seconds = time.monotonic() - began
    return report


def strike(fleet: Fleet, agents: Agents, records: int, kills: int, pace: int) -> dict[str, int]:
    """Kill all kinds equally often, in no order, while records are written and agents ask."""
    done: Counter[str] = Counter()
    queue: list[str] = []
    while sum(done[name] for name in FAULTS) < kills:
        struck = sum(done[name] for name in FAULTS)
        fleet.write(records * (struck + 1) // kills)
        agents.wait(random.randint(1, pace), PATIENCE)
        queue = queue or random.sample(FAULTS + BESIDES, len(FAULTS + BESIDES))
        for name in queue:
            if fleet.kill(name):
                done[name] += 1
                queue.remove(name)
                break
    return dict(done)


def remove_one(fleet: Fleet, number: int) -> str:
    """Write three records on the first machine, take the middle one out unsent, and hear what the hub says."""
    laptop = fleet.laptops[0]
    laptop.stop()
    AuditFile(laptop.log).append({"event": "PreToolUse", "number": number} for number in range(3))
    lines = laptop.log.read_bytes().splitlines(keepends=True)
    laptop.log.write_bytes(b"".join([*lines[:-2], lines[-1]]))
    laptop.ask(number)
    until = time.monotonic() + PATIENCE
    while not (problems := Ledger(fleet.hub / "audit").problems()) and time.monotonic() < until:
        time.sleep(0.2)
    return "; ".join(map(str, problems)) or "the hub found nothing"


def lines_of(log: Path) -> list[bytes]:
    """A log as it was written, through rotated files."""
    files = [*AuditFile(log).rotated(), log]
    return [line for path in files if path.exists() for line in path.read_bytes().splitlines(keepends=True)]


def mirrors(fleet: Fleet) -> dict[Laptop, Path]:
    """Where each machine's log is mirrored."""
    ledger = Ledger(fleet.hub / "audit")
    return {laptop: ledger.mirror(laptop.machine.enrolment().machine).path for laptop in fleet.laptops}


def caught_up(fleet: Fleet) -> list[str]:
    """Wait until every mirror ends with its log's last record."""
    until = time.monotonic() + PATIENCE
    waiting = mirrors(fleet)
    while waiting and time.monotonic() < until:
        for laptop, mirror in list(waiting.items()):
            last = link_of(lines_of(laptop.log)[-1])
            written = mirror.read_bytes().splitlines(keepends=True)[-1:] if mirror.exists() else []
            if written and link_of(written[0]) == last:
                del waiting[laptop]
        time.sleep(0.2)
    return [f"{laptop.name}: the hub never caught up" for laptop in waiting]


def compare(fleet: Fleet, report: Report) -> None:
    """Nothing lost, nothing twice, nothing changed, every chain whole, every event that was answered recorded."""
    for laptop, mirror in mirrors(fleet).items():
        written = lines_of(laptop.log)
        mirrored = mirror.read_bytes().splitlines(keepends=True) if mirror.exists() else []
        report.written += len(written)
        report.mirrored += len(mirrored)
        if written != mirrored:
            counts = f"{len(written)} records written, {len(mirrored)} mirrored"
            report.wrong.append(f"{laptop.name}: {counts}, not the same")
        wrong, again = laptop.look(mirrored)
        report.events += len(laptop.answered)
        report.judged_again += again
        report.wrong += [*wrong, *(str(one) for one in AuditFile(mirror).verify())]
    report.wrong += [str(one) for one in Ledger(fleet.hub / "audit").problems()]


def main(argv: list[str]) -> int:
    """A part of a run, or a whole one."""
    if argv[0] == "hub":
        asyncio.run(run_hub(Path(argv[1]), int(argv[2])))
    elif argv[0] == "writer":
        write_records([Path(name) for name in argv[1:]])
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
