"""A machine of a fleet as people have one: a home, agents whose hooks are commands, and the resident service."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import psutil  # type: ignore[import-untyped]

from hookline.fleet.machine import Machine
from hookline.processes.service import address, frames
from tests.processes.service.conftest import GUARD, Desk, event, reason, until

COMMANDS = (GUARD, ("answer", "claude", "--hooks", "hooks.py", "--event", "PreToolUse"))
"""What agents' settings name: a guard, and what `hookline install` writes."""
HOOKS = """
from hookline import Hooks
from hookline.guards import commands

hooks = Hooks()
hooks.add(commands.block(["rm -rf *"]))
"""
_NUMBER = re.compile(r"event-(\d+)")
_TORN = "audit.jsonl: cut off a torn last line of "
"""What whoever writes next says after a writer was killed."""
_CHILDREN = {"leaf": "until-eof", "worker": "service.worker"}
"""What a child of the service is told by, in its command line."""


class Laptop(Desk):
    """Its service starts with an event, and keeps the machine connected from then on."""

    def __init__(self, base: Path, name: str) -> None:
        base.mkdir(parents=True)
        super().__init__(base, name)
        self.env.pop("XDG_STATE_HOME", None)
        (self.project / "hooks.py").write_text(HOOKS)
        state = base / "home/.local/state/hookline"
        self.machine = Machine(state / "fleet")
        self.log = state / "audit.jsonl"
        self.asking: set[subprocess.Popen[bytes]] = set()
        self.answered: set[int] = set()
        self.by_service = self._served = 0
        self.wrong: list[str] = []

    def ask(self, number: int) -> bool:
        """One event through the client; False if the client was killed before it had answered."""
        command = f"rm -rf /event-{number}" if number % 2 else f"ls event-{number}"
        with self.start(*COMMANDS[number // 2 % len(COMMANDS)]) as process:
            self.asking.add(process)
            out, errors = process.communicate(event(command=command).encode(), timeout=120)
            self.asking.discard(process)
        if process.returncode == -signal.SIGKILL:
            return False
        done = subprocess.CompletedProcess(process.args, process.returncode, out.decode(), errors.decode())
        complaints = [line for line in done.stderr.splitlines() if _TORN not in line]
        if bool(reason(done)) != bool(number % 2) or complaints:
            self.wrong.append(f"{self.name}: event {number} was answered with {done}")
        self.answered.add(number)
        return True

    def come_back(self, numbers: Iterator[int]) -> None:
        """Ask until the service answers: where it was killed, the first event starts it."""
        until(lambda: self.ask(next(numbers)) and self.service() is not None and self._served)

    # -- whom to kill --------------------------------------------------------------------------------------------

    def service(self) -> psutil.Process | None:
        """The process that listens at the socket; what it has answered so far is counted."""
        with (
            socket.socket(socket.AF_UNIX) as link,
            contextlib.suppress(OSError, frames.FrameError, psutil.NoSuchProcess),
        ):
            link.settimeout(5)
            link.connect(str(self.socket))
            found = psutil.Process(address.peer(link)[0])
            link.sendall(frames.head(frames.CONTROL, b"status"))
            status: dict[str, Any] = json.loads(frames.read_frame(link)[1])
            self._served = int(status["events"])
            return found
        return None

    def kill(self, what: str) -> bool:
        """End the service (`service KILL`, `service TERM`), or SIGKILL its leaf or a worker; False: none was there."""
        service = self.service()
        if service is None:
            return False
        kind, _, number = what.partition(" ")
        with contextlib.suppress(psutil.NoSuchProcess):
            if kind == "service":
                service.send_signal(signal.Signals[f"SIG{number}"])
                self.by_service += self._served
                return True
            for child in service.children():
                if any(_CHILDREN[kind] in word for word in child.cmdline()):
                    child.kill()
                    return True
        return False

    # -- afterwards ----------------------------------------------------------------------------------------------

    def look(self, lines: list[bytes]) -> tuple[list[str], int]:
        """What is wrong with the log's records, and how many events were judged a second time.

        Every event that was answered has a record with the answer it got, and nothing else is in the log but what the
        writer wrote. An event whose process was lost may have been judged again; never is one missing.
        """
        wrong, seen = list(self.wrong), dict.fromkeys(self.answered, 0)
        for record in map(json.loads, lines):
            number = _NUMBER.search(json.dumps(record.get("input", "")))
            if number is None:
                if "number" not in record:
                    wrong.append(f"{self.name}: nobody asked for this: {record}")
                continue
            if record["blocked"] != bool(int(number[1]) % 2):
                wrong.append(f"{self.name}: recorded differently from how it was answered: {record}")
            seen[int(number[1])] = seen.get(int(number[1]), 0) + 1
        wrong += [f"{self.name}: event {number} was answered and not recorded" for number in seen if not seen[number]]
        return wrong, sum(count - 1 for count in seen.values() if count)

    def stop(self) -> None:
        """Stop the service, and count what it has answered."""
        if self.service() is not None:
            self.by_service += self._served
        self.run("service", "stop")

    def close(self) -> None:
        """Stop the service for good, and take its log along."""
        self.stop()
        for log in self.socket.parent.glob(f"{self.name}.log*"):
            shutil.move(log, self.base)


class Agents:
    """Sessions that ask all machines in turn, several at once, until they are told to stop."""

    def __init__(self, laptops: list[Laptop], at_once: int) -> None:
        self.laptops = laptops
        self.asked = 0
        self._turn = threading.Condition()
        self._over = False
        self._threads = [threading.Thread(target=self._work) for _ in range(at_once)]
        self.failed: list[BaseException] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        try:
            while not self._over:
                with self._turn:
                    number, self.asked = self.asked, self.asked + 1
                self.laptops[number % len(self.laptops)].ask(number)
                with self._turn:
                    self._turn.notify_all()
        except BaseException as problem:
            with self._turn:
                self.failed.append(problem)
                self._turn.notify_all()

    def wait(self, events: int, seconds: float) -> None:
        """Until that many more events have been asked."""
        with self._turn:
            goal = self.asked + events
            reached = self._turn.wait_for(lambda: self.asked >= goal or self.failed, seconds)
        if self.failed:
            raise self.failed[0]
        assert reached, "the machines answer no more"


def left_behind(folder: Path, names: list[str], seconds: float = 60) -> list[str]:
    """Processes and sockets that a run which is over has left for good: a leaf ends soon after its service."""
    end = time.monotonic() + seconds
    while (found := _of_a_run(folder, names)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _of_a_run(folder: Path, names: list[str]) -> list[str]:
    marks = [f"{folder}/", *names]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            said = [*process.cmdline(), *map("=".join, process.environ().items())]
            if process.pid != psutil.Process().pid and any(mark in word for mark in marks for word in said):
                found.append(f"process {process.pid}: {' '.join(process.cmdline())[:120]}")
    sockets = [path for name in names for path in Path(address.folder()).glob(f"{name}.*")]
    return found + [str(path) for path in sockets]
