"""A log that tests write, and `hookline console` as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hookline.records.audit.log_file import AuditFile

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Log:
    """An audit log, chained as the real ones are; every record is a second later than the one before."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.file = AuditFile(path, **options)
        self.count = 0

    def add(self, event: str = "PreToolUse", *, hooks: tuple[Any, ...] = ("guard",), **fields: Any) -> None:
        """Append one record; a hook may be a name or a whole row."""
        self.file.append([self.record(event, hooks=hooks, **fields)])

    def record(self, event: str, *, hooks: tuple[Any, ...], **fields: Any) -> dict[str, Any]:
        moment = START + timedelta(seconds=self.count)
        self.count += 1
        rows = [hook if isinstance(hook, dict) else {"hook": hook, "status": "ok", "ms": 1.5} for hook in hooks]
        made: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"), "run": "session-1", "user": "ada", "cwd": "/proj",
            "event": event, "decision": "pass", "blocked": False, "ms": 1.5 * len(rows),
        }  # fmt: skip
        if rows:
            made["hooks"] = rows
        return {**made, **fields}

    def bash(self, command: str, **fields: Any) -> None:
        """An agent is about to run a command."""
        self.add(tool="Bash", subject="Bash", input={"command": command}, tool_use_id=f"t{self.count}", **fields)

    def denied(self, command: str, reason: str = "no", by: str = "guard") -> None:
        """The same, refused."""
        self.bash(
            command, decision="deny", blocked=True, by=by, reasons=[reason],
            hooks=({"hook": by, "status": "ok", "ms": 2.5, "decision": "deny"},),
        )  # fmt: skip


def write_morning(log: Log) -> None:
    """A short session: a prompt, calls that pass, one that is rewritten, one that is refused, a failing hook."""
    log.add("UserPromptSubmit", prompt="Fix the tests.")
    log.bash("ls -la")
    log.add("PostToolUse", tool="Bash", tool_use_id="t1", input={"command": "ls -la"}, duration_ms=4, hooks=())
    log.bash("python -m unittest", rewritten={"command": "python -B -m unittest"}, hooks=("guard", "fresh_tests"))
    log.denied("rm -rf /", "`rm -rf /` is blocked by the pattern `rm -rf *`", by="commands.block")
    log.bash("make", hooks=({"hook": "slow", "status": "timeout", "ms": 5000.0, "error": "no reply within 5 s"},))
    log.add("SubagentStart", agent="a1", agent_type="Explore")
    log.add(tool="Read", agent="a1", agent_type="Explore", input={"file_path": "/proj/a.py"}, hooks=())
    log.add("SubagentStop", agent="a1", agent_type="Explore", hooks=())
    log.add("Stop", keep_going=True, by="tests_must_pass", reasons=["2 of 3 tests fail"], hooks=("tests_must_pass",))


class Running:
    """A console; `address` opens it once."""

    def __init__(self, folder: Path, argv: list[str], **more: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "HOOKLINE"))}
        (folder / "home").mkdir(exist_ok=True)
        env = {**inherited, "HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache"), **more}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hookline.cli.main", "console", *argv, "--no-open"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=env, cwd=folder,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("console: "):
            raise AssertionError(f"the console did not start: {line}{self.process.communicate()[1]}")
        self.address = line.split()[1]
        self.entered = False
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.said += list(self.process.stdout)

    @property
    def url(self) -> str:
        return self.address.partition("#")[0]

    @property
    def ticket(self) -> str:
        return self.address.partition("#ticket=")[2]

    def way_in(self) -> str:
        """What a window opens: its address once; from then on the window has the token."""
        entered, self.entered = self.entered, True
        return self.url if entered else self.address

    def stop(self) -> str:
        """End it as Ctrl-C's sibling does; what it said on stderr."""
        assert self.process.stderr is not None
        if self.process.stderr.closed:
            return ""
        self.process.terminate()
        self.process.wait(30)
        self._reader.join(30)
        assert self.process.stdout is not None
        said = self.process.stderr.read()
        self.process.stderr.close()
        self.process.stdout.close()
        return said
