"""A service of the test's own, and `hookline` as a real process that uses it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from hookline.processes.service import address, control
from tests import forked

HOOKLINE = (sys.executable, "-m", "hookline")
IMPORT_TIME = "PYTHONPROFILEIMPORTTIME"
RM = {"command": "rm -rf /"}
_numbers = itertools.count()


def event(**tool_input: object) -> str:
    """A Bash call, as Claude Code announces it."""
    payload = {
        "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": "/",
        "tool_name": "Bash", "tool_input": tool_input,
    }  # fmt: skip
    return json.dumps(payload)


class Desk:
    """A project folder and a service with a name of its own."""

    def __init__(self, base: Path, name: str, home: Path | None = None) -> None:
        self.name, self.base = name, base
        self.project, self.home = base / "proj", home or base / "home"
        (base / "home").mkdir()
        self.project.mkdir()
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("CLAUDE", "HOOKLINE"))}
        self.env = {**inherited, "HOME": str(self.home), "HOOKLINE_SERVICE": name}

    @property
    def socket(self) -> Path:
        return Path(address.folder(), f"{self.name}.sock")

    def run(self, *words: str, stdin: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
        """`hookline` to its end, forked unless its interpreter would start in another way than ours."""
        if any({**self.env, **env}.get(name) != os.environ.get(name) for name in ("PYTHONPATH", IMPORT_TIME)):
            return self.run_cold(*words, stdin=stdin, **env)
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = forked.run(words, cwd=self.project, env={**self.env, **env}, stdin=data, module="hookline.__main__")
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def run_cold(self, *words: str, stdin: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
        """`hookline` as an agent starts it."""
        done = subprocess.run(
            [*HOOKLINE, *words], cwd=self.project, env={**self.env, **env}, capture_output=True, timeout=120,
            input=stdin.encode() if isinstance(stdin, str) else stdin, check=False,
        )  # fmt: skip
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*HOOKLINE, *words], cwd=self.project, env={**self.env, **env}, stdin=pipe, stdout=pipe, stderr=pipe
        )

    def guard(self, command: str = "rm -rf /", **env: str) -> subprocess.CompletedProcess[str]:
        return self.run("guard", "commands", "--block", "rm -rf *", stdin=event(command=command), **env)

    def status(self) -> dict[str, Any]:
        """What `hookline service status --json` prints, without a process for each look where the package is ours."""
        if self.env.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
            found: dict[str, Any] = json.loads(self.run("service", "status", "--json").stdout)
            return found
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(control.NotRunning):
            patch.setenv("HOOKLINE_SERVICE", self.name)
            return {"running": True, **control.status()}
        return {"running": False}

    def warm(self, *words: str, stdin: str = event(command="ls"), **env: str) -> None:
        """Ask until the service has answered an event of this kind."""
        before = self.events()

        def answered() -> bool:
            self.run(*(words or GUARD), stdin=stdin, **env)
            return self.events() > before

        until(answered)

    def events(self) -> int:
        """How many events the service has answered; each is counted only when its process has ended."""
        found: list[dict[str, Any]] = []

        def settled() -> bool:
            found[:] = [self.status()]
            return not any(worker["running"] for worker in found[0].get("workers", ()))

        until(settled)
        return int(found[0].get("events", 0))

    def processes(self) -> list[psutil.Process]:
        """The service and everything below it."""
        found = self.status()
        with contextlib.suppress(KeyError, psutil.NoSuchProcess):
            service = psutil.Process(found["pid"])
            return [service, *service.children(recursive=True)]
        return []


GUARD = ("guard", "commands", "--block", "rm -rf *")


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until a condition holds; fail if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """Why a Claude Code command hook denied; nothing if it did not."""
    if done.returncode == 2:
        return done.stderr
    said = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else {}
    specific = said.get("hookSpecificOutput", {})
    return str(specific.get("permissionDecisionReason")) if specific.get("permissionDecision") == "deny" else ""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A service that is not running yet; when the test ends, nothing of it may be left."""
    with _ended(Desk(tmp_path, _new_name())) as made:
        yield made


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A service that runs, for all tests of a file that do it no harm."""
    with _ended(Desk(tmp_path_factory.mktemp("service"), _new_name())) as made:
        made.warm()
        yield made


@pytest.fixture
def guest(running: Desk, tmp_path: Path) -> Desk:
    """A project of the test's own at the service that runs; in another home, another worker would answer."""
    return Desk(tmp_path, running.name, running.home)


def _new_name() -> str:
    return f"test-{os.getpid()}-{next(_numbers)}"


def desk_for(base: Path) -> contextlib.AbstractContextManager[Desk]:
    """A service that is not running yet, for one test."""
    return _ended(Desk(base, _new_name()))


@contextlib.contextmanager
def _ended(made: Desk) -> Iterator[Desk]:
    yield made
    below = made.processes()
    made.run("service", "stop")
    assert psutil.wait_procs(below, timeout=30)[1] == []
    left = sorted(path.name for path in Path(address.folder()).glob(f"{made.name}.*"))
    for path in Path(address.folder()).glob(f"{made.name}.log*"):
        path.unlink()
    assert [name for name in left if ".log" not in name] == []
