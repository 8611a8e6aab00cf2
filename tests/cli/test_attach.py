"""`hookline attach`: the entries it writes ask the hooks, and it shows what they decide."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.claude_code.find import bundled_cli
from hookline.processes.service import address
from tests import forked
from tests.hosts.claude_code.conftest import api
from tests.hosts.claude_code.hosts import Stage, stage_for
from tests.processes.service.conftest import Desk, desk, event, reason, until

__all__ = ["api", "desk"]

HOOKS = """
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash")
async def no_rm(event):
    if "rm" in event.tool_input["command"]:
        return deny("NO-RM here")
"""
OWN = """{
  // one's own
  "model": "opus",
  "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}
}
"""
HERE = ".claude/settings.local.json"


class Attached:
    """A `hookline attach` that is up."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process, self.folder, self.settings = process, folder, folder / HERE
        self.first = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    @property
    def command(self) -> str:
        """What Claude Code would run before a tool."""
        command: str = json.loads(self.settings.read_text())["hooks"]["PreToolUse"][-1]["hooks"][0]["command"]
        return command

    def ask(self, line: str, env: dict[str, str] | None = None) -> str:
        """Why the command denies, asked as Claude Code asks."""
        done = subprocess.run(
            ["sh", "-c", self.command], cwd=self.folder, env=env, input=event(command=line), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return reason(done)

    def stop(self) -> str:
        """What it says when it is told to end."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return out


@contextmanager
def attached(folder: Path, env: dict[str, str] | None = None) -> Iterator[Attached]:
    (folder / "hooks.py").write_text(HOOKS)
    command = [sys.executable, "-m", "hookline", "attach", "hooks.py", "--project", "."]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Attached(process, folder)
        finally:
            process.kill()


def removed(folder: Path) -> str:
    done = forked.run(["attach", "--remove", "--project", "."], cwd=folder, env=os.environ, module="hookline.__main__")
    done.check_returncode()
    return done.stdout.decode()


def left_by(attach: Attached) -> list[Path]:
    return list(Path(address.folder()).glob(f"{attach.process.pid}.*"))


def test_hooks_are_asked_and_seen_until_it_is_stopped(tmp_path: Path) -> None:
    """The entry denies what the hooks deny, each verdict is shown, and afterwards no settings are left."""
    with attached(tmp_path) as attach:
        denied, passed = attach.ask("rm x"), attach.ask("ls")
        shown = [attach.line(), attach.line()]
        last = attach.stop()

    assert attach.first == f"attached: 1 hook in {HERE}; Ctrl-C takes them out again\n"
    assert (denied, passed) == ("NO-RM here", "")
    assert "→ DENY by no_rm: NO-RM here" in shown[0]
    assert shown[1] == "PreToolUse(Bash) → PASS\n"
    assert last == f"detached: {HERE} is as it was\n"
    assert not attach.settings.exists()


def test_the_service_answers_and_attach_looks_on(desk: Desk) -> None:
    """Nothing is served by the process on the terminal: it shows what the service decides."""
    asked = 0
    with attached(desk.project, desk.env) as attach:

        def answered() -> bool:
            nonlocal asked
            asked += 1
            assert attach.ask("rm x", desk.env) == "NO-RM here"
            return bool(desk.status().get("events"))

        until(answered)
        shown = [attach.line() for _ in range(asked)]
        attach.stop()

    assert all("DENY by no_rm: NO-RM here" in line for line in shown)
    assert left_by(attach) == []


def test_ones_own_settings_are_as_they_were(tmp_path: Path) -> None:
    """To the byte, comments and all."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / HERE).write_text(OWN)
    with attached(tmp_path) as attach:
        meanwhile = attach.settings.read_text()
        attach.stop()

    assert "hooks.py" in meanwhile
    assert (tmp_path / HERE).read_text() == OWN


def test_hooks_hold_when_it_is_killed_and_can_be_removed(tmp_path: Path) -> None:
    """The entries need nobody; `--remove` takes them out."""
    with attached(tmp_path) as attach:
        attach.process.kill()
        attach.process.wait()
        denied = attach.ask("rm x")

    assert denied == "NO-RM here"
    assert removed(tmp_path) == f"removed from {HERE}\n"
    assert removed(tmp_path) == f"nothing to remove in {HERE}\n"
    assert not attach.settings.exists()
    assert left_by(attach) == []


def test_a_second_one_takes_over(tmp_path: Path) -> None:
    """The first one's end leaves the second one's entries alone."""
    with attached(tmp_path) as first, attached(tmp_path) as second:
        told = first.stop()
        denied = second.ask("rm x")
        second.stop()

    assert told == ""
    assert denied == "NO-RM here"
    assert not second.settings.exists()


def test_a_hook_file_that_breaks_meanwhile_is_seen(tmp_path: Path) -> None:
    """The gate is closed, and the terminal says why."""
    with attached(tmp_path) as attach:
        (tmp_path / "hooks.py").write_text("oh no")
        denied = attach.ask("ls")
        shown = attach.line()
        attach.stop()

    assert "hooks.py" in denied
    assert shown.startswith("PreToolUse: ")
    assert "hooks.py" in shown


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 3}'])
def test_a_broken_settings_file_is_left_alone(tmp_path: Path, text: str) -> None:
    """Nothing is written over a file that cannot be read."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / HERE).write_text(text)
    with attached(tmp_path) as attach:
        assert attach.first == ""
        assert attach.process.wait(60) == 1

    assert (tmp_path / HERE).read_text() == text


async def test_the_real_cli_asks_the_hooks(tmp_path: Path, api: Any) -> None:
    """A plain `claude -p`, which knows nothing of us, is denied by our hook; also when attach was killed."""
    cli = bundled_cli()
    if cli is None:
        pytest.skip("no Claude CLI: run `pip install claude-agent-sdk`")
    stage = stage_for(str(cli), tmp_path, api)
    api.main["turns"] = [{"tools": [["Bash", {"command": "rm x; touch ran"}]]}, {"text": "done"}]
    with attached(Path(stage.cwd)) as attach:
        await claude_p(stage)
        answered, shown = tool_results(api), attach.line()
        attach.process.kill()
        attach.process.wait()
        api.main["at"] = 0
        api.requests.clear()
        await claude_p(stage)
        removed(Path(stage.cwd))

    assert "NO-RM here" in answered
    assert "DENY by no_rm: NO-RM here" in shown
    assert "NO-RM here" in tool_results(api)
    assert not Path(stage.cwd, "ran").exists()


async def claude_p(stage: Stage) -> None:
    process = await asyncio.create_subprocess_exec(
        stage.cli, "-p", "go", "--allowedTools=Bash", cwd=stage.cwd, env=stage.env,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert await asyncio.wait_for(process.wait(), 60) == 0


def tool_results(api: Any) -> str:
    blocks = [b for r in api.requests for m in r["request"]["messages"] if m["role"] == "user" for b in m["content"]]
    return json.dumps([block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"])
