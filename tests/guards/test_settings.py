"""`hookline guard …` as a command hook in a settings file: real processes, spawned and persistent, failing closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.cli.commands import guard
from hookline.events import PermissionRequest, PreToolUse, UserPromptSubmit
from hookline.replies import Decision
from tests import forked

HOOKLINE = f"{Path(sys.executable).parent / 'hookline'} guard"


def settled(project: Path, *entries: tuple[str, str, dict[str, Any]]) -> Hooks:
    """A project whose settings file has these guards."""
    hooks: dict[str, list[Any]] = {}
    for event, arguments, options in entries:
        hook = {"type": "command", "command": f"{HOOKLINE} {arguments}", "onFailure": "block", **options}
        hooks.setdefault(event, []).append({"matcher": "*", "hooks": [hook]})
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    return Hooks.from_settings(project, trust="all", setting_sources="project", home=project)


def call(project: Path, tool: str, **given: Any) -> PreToolUse:
    """A tool call in the project."""
    return PreToolUse(session_id="s", transcript_path="", cwd=str(project), tool_name=tool, tool_input=given)


async def test_guards_in_a_settings_file_decide(tmp_path: Path) -> None:
    """Three guards, three processes per call, one verdict."""
    async with settled(
        tmp_path,
        ("PreToolUse", "commands --block 'rm -rf *' --containing secret-word", {}),
        ("PreToolUse", "paths", {}),
        ("UserPromptSubmit", "secrets", {}),
        ("PermissionRequest", "approvals --allow 'ls *' --otherwise block", {}),
    ) as hooks:
        denied = await hooks.fire(call(tmp_path, "Bash", command="rm -r -f build"))
        asked = await hooks.fire(call(tmp_path, "Bash", command="$x -rf build"))
        outside = await hooks.fire(call(tmp_path, "Write", file_path="/etc/x", content=""))
        fine = await hooks.fire(call(tmp_path, "Bash", command="ls -la"))
        prompt = await hooks.fire(UserPromptSubmit(prompt="use gh" + "p_" + "a1B2c3D4e5F6" * 3))
        request = PermissionRequest(cwd=str(tmp_path), tool_name="Bash", tool_input={"command": "ls"})
        approved = await hooks.fire(request)

    assert [each.decision for each in (denied, asked, outside, fine)] == [
        Decision.DENY, Decision.ASK, Decision.DENY, Decision.PASS,
    ]  # fmt: skip
    assert "rm -rf *" in denied.reason
    assert (prompt.blocked, approved.decision) == (True, Decision.ALLOW)


async def test_a_persistent_guard_answers_line_by_line(tmp_path: Path) -> None:
    """One process for all calls of the session."""
    async with settled(tmp_path, ("PreToolUse", "commands --only 'ls *' --lines", {"persistent": True})) as hooks:
        decisions = [
            (await hooks.fire(call(tmp_path, "Bash", command=line))).decision
            for line in ("ls", "rm x", "ls -l", "ls; rm x")
        ]

    assert decisions == [Decision.PASS, Decision.DENY, Decision.PASS, Decision.DENY]


def run(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    """The guard as its own process."""
    return forked.run(["guard", *arguments], cwd=Path.cwd(), env=os.environ, stdin=data, module="hookline.__main__")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"not json",
        b"[]",
        b'{"hook_event_name": "Nonsense"}',
        b'{"hook_event_name": "PreToolUse"}',
        b"\xff\xfe",
    ],
)
def test_what_cannot_be_judged_is_blocked(data: bytes) -> None:
    """Exit code 2 and a reason: the tool does not run."""
    result = run(["commands", "--block", "rm *"], data)

    assert (result.returncode, bool(result.stderr)) == (2, True)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"hook_event_name": "PreToolUse"}'])
def test_a_persistent_guard_denies_what_it_cannot_judge(data: bytes) -> None:
    """A line that cannot be read is answered with a deny, and the next line is judged as ever."""
    good = json.dumps({"hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": "/",
                       "tool_name": "Bash", "tool_input": {"command": "ls"}}).encode()  # fmt: skip

    result = run(["commands", "--block", "rm *", "--lines"], data + b"\n" + good + b"\n")
    first, second = [json.loads(line) for line in result.stdout.splitlines()]

    assert first["decision"] == "block"
    assert "cannot judge" in first["reason"]
    assert "decision" not in second


@pytest.mark.parametrize(
    "arguments",
    [
        ["commands"],
        ["commands", "--block", "a; b"],
        ["budget"],
        ["budget", "--per-tool", "Bash"],
        ["budget", "--tool-calls", "0"],
    ],
)
def test_a_guard_that_makes_no_sense_is_an_error(arguments: list[str]) -> None:
    """And blocks: a mistake in a settings file must not open the gate."""
    assert guard.main(arguments) == guard.FAILED


def test_a_budget_is_kept_between_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is a process of its own, and they share the count, which lies in the user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    event = json.dumps({"hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": "/",
                        "tool_name": "Bash", "tool_input": {"command": "ls"}}).encode()  # fmt: skip

    answers = [run(["budget", "--tool-calls", "2"], event).stdout for _ in range(3)]

    assert ["deny" in answer.decode() for answer in answers] == [False, False, True]
    assert [path.name for path in (tmp_path / "hookline").iterdir()] == ["budgets"]
