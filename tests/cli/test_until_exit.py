"""`hookline install claude --until-exit`: the entries ask the hooks, and are gone when it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.claude_code.process import bundled_cli
from tests import forked
from tests.hosts.claude_code.conftest import api
from tests.hosts.claude_code.hosts import Stage, stage_for
from tests.processes.service.conftest import Desk, desk, event, reason, until

__all__ = ["api", "desk"]

HOOKS = """
from pathlib import Path

from hookline import Hooks, deny
from hookline.events import PreToolUse
from hookline.records import AuditLog

hooks = Hooks()
hooks.observe(AuditLog(Path(__file__).with_name("audit.jsonl")))

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
READY = "Ctrl-C takes them out again\n"
HERE = ".claude/settings.local.json"


class Installed:
    """A `hookline install --until-exit` that is up."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process, self.folder, self.settings = process, folder, folder / HERE
        assert process.stdout is not None
        self.said = list(takewhile(lambda line: line != READY, process.stdout))

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
def installed(folder: Path, env: dict[str, str] | None = None) -> Iterator[Installed]:
    (folder / "hooks.py").write_text(HOOKS)
    command = [sys.executable, "-m", "hookline", "install", "claude", "--hooks", "hooks.py", "--until-exit"]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Installed(process, folder)
        finally:
            process.kill()


def uninstalled(folder: Path) -> str:
    words = ["uninstall", "claude", "--scope", "local"]
    return forked.run(words, cwd=folder, env=os.environ, module="hookline.__main__").stdout.decode()


def recorded(folder: Path) -> list[tuple[str, list[str]]]:
    """What `audit show` reads: the decision and its reasons."""
    records = map(json.loads, (folder / "audit.jsonl").read_text().splitlines())
    return [(record["decision"], record.get("reasons", [])) for record in records]


def test_hooks_are_asked_until_it_is_stopped(tmp_path: Path) -> None:
    """The entry denies what the hooks deny, their log has each verdict, and afterwards no settings are left."""
    with installed(tmp_path) as command:
        denied, passed = command.ask("rm x"), command.ask("ls")
        until(lambda: len(recorded(tmp_path)) == 2)  # the log is written after the answer
        last = command.stop()

    assert command.said[0].startswith("Claude Code: hooked on PreToolUse, PostToolUse, ")  # the log wants them all
    assert command.said[1] == f"  in {tmp_path / HERE}\n"
    assert (denied, passed) == ("NO-RM here", "")
    assert recorded(tmp_path) == [("deny", ["NO-RM here"]), ("pass", [])]
    assert last == f"Claude Code: removed {tmp_path / HERE}\n"
    assert not command.settings.exists()


def test_in_a_folder_of_the_project_it_is_the_projects(tmp_path: Path) -> None:
    """As Claude Code finds its settings."""
    (tmp_path / ".claude").mkdir()
    (folder := tmp_path / "src").mkdir()
    with installed(folder) as command:
        assert (tmp_path / HERE).exists()
        assert command.stop() == f"Claude Code: removed {tmp_path / HERE}\n"


def test_the_service_answers(desk: Desk) -> None:
    """Nothing is served by the process on the terminal."""
    with installed(desk.project, desk.env) as command:

        def answered() -> bool:
            assert command.ask("rm x", desk.env) == "NO-RM here"
            return bool(desk.status().get("events"))

        until(answered)
        command.stop()


def test_ones_own_settings_are_as_they_were(tmp_path: Path) -> None:
    """To the byte, comments and all."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / HERE).write_text(OWN)
    with installed(tmp_path) as command:
        meanwhile = command.settings.read_text()
        command.stop()

    assert "hooks.py" in meanwhile
    assert (tmp_path / HERE).read_text() == OWN


def test_hooks_hold_when_it_is_killed_and_can_be_removed(tmp_path: Path) -> None:
    """The entries need no process; `uninstall --scope local` takes them out."""
    with installed(tmp_path) as command:
        command.process.kill()
        command.process.wait()
        denied = command.ask("rm x")

    assert denied == "NO-RM here"
    assert uninstalled(tmp_path) == f"Claude Code: removed {tmp_path / HERE}\n"
    assert uninstalled(tmp_path) == "Claude Code: nothing of ours was there\n"
    assert not command.settings.exists()


def test_a_second_one_takes_over(tmp_path: Path) -> None:
    """The first one's end leaves the second one's entries alone."""
    with installed(tmp_path) as first, installed(tmp_path) as second:
        told = first.stop()
        denied = second.ask("rm x")
        second.stop()

    assert told == ""
    assert denied == "NO-RM here"
    assert not second.settings.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 3}'])
def test_a_broken_settings_file_is_left_alone(tmp_path: Path, text: str) -> None:
    """Nothing is written over a file that cannot be read."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / HERE).write_text(text)
    with installed(tmp_path) as command:
        assert command.said == []
        assert command.process.wait(60) == 1

    assert (tmp_path / HERE).read_text() == text


async def test_the_real_cli_asks_the_hooks(tmp_path: Path, api: Any) -> None:
    """A plain `claude -p`, which knows nothing of us, is denied by our hook; also when the command was killed."""
    cli = bundled_cli()
    if cli is None:
        pytest.skip("no Claude CLI: run `pip install claude-agent-sdk`")
    stage = stage_for(str(cli), tmp_path, api)
    api.main["turns"] = [{"tools": [["Bash", {"command": "rm x; touch ran"}]]}, {"text": "done"}]
    with installed(Path(stage.cwd)) as command:
        await claude_p(stage)
        answered = tool_results(api)
        command.process.kill()
        command.process.wait()
        api.main["at"] = 0
        api.requests.clear()
        await claude_p(stage)
        uninstalled(Path(stage.cwd))

    assert "NO-RM here" in answered
    assert ("deny", ["NO-RM here"]) in recorded(Path(stage.cwd))
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
