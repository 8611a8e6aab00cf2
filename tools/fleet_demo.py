"""`make fleet-demo`: a hub and three machines on this computer, each with a home of its own; no network.

A policy is pushed to all three, an agent's call is refused on each, and the hub shows what it knows. Everything runs
through the command line, as it would on four computers. `--stay` leaves it running, with the hub's page to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

POLICY = '''"""The team's policy: nobody pushes by force."""

from hookline import Hooks
from hookline.guards import commands

hooks = Hooks()
hooks.add(commands.block(["git push --force*", "git push -f*"]))
'''
CALL = {
    "hook_event_name": "PreToolUse", "session_id": "demo", "transcript_path": "", "cwd": "/",
    "tool_name": "Bash", "tool_input": {"command": "git push --force origin main"},
}  # fmt: skip
PATIENCE = 120.0


class Computer:
    """A home of its own, and `hookline` in it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.home = folder / name
        self.home.mkdir()
        self._running: list[subprocess.Popen[str]] = []

    @property
    def _env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "HOOKLINE_SERVICE": "0"}

    def run(self, *words: str, stdin: str = "", code: int = 0) -> str:
        """Run a command to its end and show what it printed."""
        argv = [sys.executable, "-m", "hookline", *words]
        ran = subprocess.run(argv, input=stdin, env=self._env, capture_output=True, text=True, check=False)
        if ran.returncode != code:
            raise SystemExit(f"{self.name}: hookline {' '.join(words)}: exit code {ran.returncode}\n{ran.stderr}")
        return (ran.stdout + ran.stderr).strip()

    def start(self, *words: str) -> Path:
        """Run a command beside everything else; what it prints is in the file that is returned."""
        argv = [sys.executable, "-m", "hookline", *words]
        path = self.home / f"{words[1]}.log"
        log = path.open("w")
        with log:
            self._running.append(subprocess.Popen(argv, env=self._env, stdout=log, stderr=log, text=True))
        return path

    def stop(self) -> None:
        """End what runs."""
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            process.wait()


def tell(text: str) -> None:
    """A line of the story."""
    print(f"\n\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def until(what: str, ready: Callable[[], bool]) -> None:
    """Wait for something to be true."""
    end = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > end:
            raise SystemExit(f"gave up after {PATIENCE:.0f} s: {what}")
        time.sleep(0.1)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def play(folder: Path, *, stay: bool) -> None:
    """The whole story."""
    hub = Computer(folder, "hub")
    machines = [Computer(folder, name) for name in ("laptop", "desktop", "runner")]
    policy = folder / "policy"
    policy.mkdir()
    (policy / "hooks.py").write_text(POLICY)
    (policy / "tests.jsonl").write_text(json.dumps({"event": CALL, "decision": "deny"}) + "\n")
    try:
        tell("1. a hub")
        log = hub.start("fleet", "hub", "--port", str(free_port()))
        until("the hub starts", lambda: "the hub runs at" in log.read_text())
        print(log.read_text().strip())
        tell("2. three machines join, each with a token that works once")
        for machine in machines:
            join = hub.run("fleet", "token").split()[1:]
            print(machine.run(*join, "--name", machine.name).splitlines()[0])
            machine.start("fleet", "run")
        tell("3. a policy is checked, signed and pushed")
        print(hub.run("fleet", "push", str(policy), "--yes", "-m", "no force pushes"))
        until("the policy is in force everywhere", lambda: _in_force(hub, len(machines)))
        tell("4. on each machine an agent tries `git push --force`")
        for machine in machines:
            answer = machine.run("guard", "commands", "--block", "nothing-else", stdin=json.dumps(CALL))
            print(f"{machine.name}: {json.loads(answer)['hookSpecificOutput']['permissionDecisionReason']}")
        until("the audit logs have arrived", lambda: _recorded(hub) == len(machines))
        tell("5. what the hub knows")
        print(hub.run("fleet", "machines"))
        print(hub.run("fleet", "verify"))
        tell("6. the hub's page")
        show_page(hub, stay=stay)
    finally:
        for computer in (*machines, hub):
            computer.stop()


def show_page(hub: Computer, *, stay: bool) -> None:
    """Serve the page, and read its Machines view as a browser would: with a ticket that is traded for a token."""
    log = hub.start("fleet", "console", "--no-open")
    until("the page is served", lambda: "#" in log.read_text())
    address = next(word for word in log.read_text().split() if word.startswith("http"))
    if stay:
        print(f"open {address}\nCtrl-C ends the demo", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
        return
    page, _, ticket = address.partition("#")
    html = _fetched(page)
    token = json.loads(_fetched(f"{page}api/login", body=ticket.rpartition("=")[2]))["token"]
    until("the page knows the machines", lambda: bool(_fetched_machines(page, token)))
    print(f"{page} serves its page ({len(html):,} bytes) and what it shows; the Machines view:")
    for row in _fetched_machines(page, token):
        print(f"  {row['name']}: policy {row['policy']}, {'chain whole' if row['ok'] else row['problems']}")
    print("`hookline fleet console` opens it in the browser; `make fleet-demo ARGS=--stay` keeps this fleet to look at")


def _fetched_machines(page: str, token: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_fetched(f"{page}api/machines", token=token))["machines"]
    return rows


def _fetched(url: str, *, token: str = "", body: str | None = None) -> str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else body.encode()
    request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310 - our own page, on loopback
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE) as answer:
        text: str = answer.read().decode()
        return text


def _machines(hub: Computer) -> list[dict[str, int]]:
    argv = [sys.executable, "-m", "hookline", "fleet", "machines", "--json"]
    ran = subprocess.run(argv, env=hub._env, capture_output=True, text=True, check=False)  # noqa: SLF001
    rows: list[dict[str, int]] = json.loads(ran.stdout)["machines"] if ran.stdout else []
    return rows


def _in_force(hub: Computer, count: int) -> bool:
    return sum(row["policy"] == 1 for row in _machines(hub)) == count


def _recorded(hub: Computer) -> int:
    return sum(row["records"] > 0 for row in _machines(hub))


def main() -> int:
    """Play it in a folder that is removed afterwards."""
    flags = argparse.ArgumentParser(prog="make fleet-demo", description=__doc__)
    flags.add_argument("--stay", action="store_true", help="leave the fleet running until Ctrl-C, to look at its page")
    stay: bool = flags.parse_args().stay
    if stay:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hookline-fleet-") as folder:
        play(Path(folder), stay=stay)
    print(f"\ndone in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
