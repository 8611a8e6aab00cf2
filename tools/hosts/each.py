"""`make hosts`, host by host: fetched, put through the battery, measured; a line for each step, a summary at last."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BATTERY = ("tests/hosts/test_real.py", "tests/hosts/test_families.py", "tests/hosts/prove")
LOGS = ROOT / ".cache" / "make-hosts"
_AT_ONCE = 2
_PATIENCE = 20.0
"""Seconds that a step gets to clean up after Ctrl-C."""
_POLL_SECONDS = 0.5


class Steps(NamedTuple):
    """The commands of one host; the last one prints what it measured, as JSON."""

    fetch: Sequence[str]
    battery: Sequence[str]
    measure: Sequence[str]


class HostOutcome(NamedTuple):
    """How one host did."""

    name: str
    problem: str = ""
    missing: bool = False
    measured: Mapping[str, Any] | None = None


def steps(name: str) -> Steps:
    """What is run for a host."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "real_hosts", *BATTERY]
    return Steps(
        fetch=[str(ROOT / "tools" / "hosts" / "install"), name],
        battery=["env", f"HOOKLINE_HOSTS={name}", *pytest],
        measure=[sys.executable, "-m", "tools.hosts.measure", name],
    )


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


class HostRunner:
    """Runs the steps of hosts, two hosts at a time, and ends what it started when it is interrupted."""

    def __init__(self, commands: Callable[[str], Steps] = steps, logs: Path = LOGS) -> None:
        self._commands, self._logs = commands, logs
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._over = False

    def run(self, names: Iterable[str]) -> list[HostOutcome]:
        """Every host, in order; raises `Interrupted` once nothing of it is left running, after Ctrl-C or a SIGTERM."""
        for sign in (signal.SIGINT, signal.SIGTERM):  # a shell starts what is in the background without the first
            signal.signal(sign, signal.default_int_handler)
        self._logs.mkdir(parents=True, exist_ok=True)
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            work = [pool.submit(self._one, name) for name in names]
            while wait(work, _POLL_SECONDS).not_done:  # a signal just before a wait without a limit would go unheard
                pass
            return [one.result() for one in work]
        except KeyboardInterrupt:
            self._end(pool)
            raise Interrupted from None
        finally:
            pool.shutdown()

    def _one(self, name: str) -> HostOutcome:
        fetch, battery, measure = self._commands(name)
        code, said = self._step(name, "fetch", fetch)
        if code:
            return self._told(
                HostOutcome(name, _last(said).removeprefix(f"{name}: ") or f"exit code {code}", missing=True)
            )
        began = time.monotonic()
        code, said = self._step(name, "battery", battery)
        self._say(name, f"battery: {_last(said).strip('= ') or f'exit code {code}'}")
        failed = [line.partition(" - ")[0] for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        broken = "" if code == 0 else f"battery: {', '.join(failed) or _last(said)} (see {self._log(name, 'battery')})"
        code, said = self._step(name, "measure", measure)
        measured = _parsed(said) if code == 0 else None
        if measured is None:
            return self._told(HostOutcome(name, broken or f"could not be measured: {_last(said)}"))
        bad = [case for case, held in measured["cases"].items() if held is False]
        problem = "; ".join(filter(None, [broken, f"does not hold: {', '.join(bad)}" if bad else ""]))
        self._say(name, f"{measured['version']}: {problem or 'all of it holds'} ({time.monotonic() - began:.0f} s)")
        return HostOutcome(name, problem, measured=measured)

    def _told(self, outcome: HostOutcome) -> HostOutcome:
        self._say(outcome.name, outcome.problem)
        return outcome

    def _say(self, name: str, text: str) -> None:
        if not self._over:
            print(f"{name + ':':<11}{text}", flush=True)

    def _log(self, name: str, step: str) -> Path:
        return self._logs / f"{name}-{step}.log"

    def _step(self, name: str, step: str, argv: Sequence[str]) -> tuple[int, str]:
        """The exit code of a command and what it said, which is kept in a log as well."""
        with self._lock:
            if self._over:
                return 130, "interrupted"
            process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
            self._running.add(process)
        self._say(name, f"{step} …")
        said, _ = process.communicate()
        with self._lock:
            self._running.discard(process)
        self._log(name, step).write_text(said)
        return process.returncode, said

    def _end(self, pool: ThreadPoolExecutor) -> None:
        """Ask what runs to end, as Ctrl-C does, and end what does not."""
        with self._lock:
            self._over = True
            running = list(self._running)
        pool.shutdown(wait=False, cancel_futures=True)
        for sign in (signal.SIGINT, signal.SIGKILL):
            for process in running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, sign)
            for process in running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE)


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _parsed(text: str) -> dict[str, Any] | None:
    with suppress(ValueError):
        found = json.loads(_last(text))
        if isinstance(found, dict) and found.get("cases"):
            return found
    return None


def summary(outcomes: Sequence[HostOutcome], seconds: float) -> str:
    """What came of it, and what did not."""
    bad = [one for one in outcomes if one.problem]
    held = f"{len(outcomes) - len(bad)} of {len(outcomes)} agents hold"
    lines = [f"  {one.name}: {'not tried: ' if one.missing else ''}{one.problem}" for one in bad]
    return "\n".join([f"\n{held} ({seconds / 60:.0f} min)", *lines])
