"""Events through the client while service and workers are killed at random: each is answered, and rightly."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil  # type: ignore[import-untyped]

from tests.service.conftest import Desk, reason

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

    def ask(number: int) -> tuple[str, str, str]:
        command = DANGEROUS[number % 3] if number % 2 else "ls"
        done = desk.guard(command)
        return command, reason(done) if number % 2 else done.stdout, done.stderr

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(ask, range(EVENTS)))
    finally:
        over.set()
        killer.join()

    for command, said, complaint in found:
        assert complaint == ""
        if command == "ls":
            assert json.loads(said) == {}
        else:
            assert "is blocked by the pattern" in said
    assert killed
    desk.warm()
