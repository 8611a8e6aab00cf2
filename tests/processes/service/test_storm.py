"""Events through the client while service and workers are killed at random: each is answered, and rightly."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil  # type: ignore[import-untyped]
import pytest

from tests.processes.service.conftest import GUARD, Desk, event, reason

EVENTS = int(os.environ.get("HOOKLINE_STORM_EVENTS", "120"))
"""5000 for the whole storm."""
AT_ONCE = 6
DANGEROUS = ("rm -rf /", "rm -rf ~", "true && rm -rf /etc")


def family(desk: Desk) -> list[psutil.Process]:
    """The service and its descendants, found by its name: it may be gone by the time anybody asks it."""
    for process in psutil.process_iter(["cmdline"]):
        if desk.name in (process.info["cmdline"] or []):
            with contextlib.suppress(psutil.NoSuchProcess):
                return [process, *process.children(recursive=True)]
    return []


def check(command: str, done: subprocess.CompletedProcess[str]) -> None:
    """What is dangerous was denied for its reason, what is not was let through, and nobody complained."""
    assert done.stderr == ""
    if command == "ls":
        assert json.loads(done.stdout) == {}
    else:
        assert "is blocked by the pattern" in reason(done)


@pytest.mark.timeout(max(300, EVENTS))
def test_every_gate_is_answered_while_service_and_workers_are_killed(desk: Desk) -> None:
    """None is open, and nothing is left behind (the fixture looks)."""
    choose = random.Random(14)
    desk.warm()
    over = threading.Event()
    killed = []

    def kill() -> None:
        while not over.wait(choose.expovariate(1)):
            found = family(desk)
            if found:
                victim = choose.choice(found)
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.send_signal(choose.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
                    killed.append(victim.pid)

    def ask(number: int) -> None:
        command = DANGEROUS[number % 3] if number % 2 else "ls"
        run = desk.run if number % 8 else desk.run_cold
        check(command, run(*GUARD, stdin=event(command=command)))  # a long storm ends with the first wrong answer

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answered = sum(1 for _ in pool.map(ask, range(EVENTS)))
    finally:
        over.set()
        killer.join()

    assert answered == EVENTS
    assert killed
    desk.warm()
