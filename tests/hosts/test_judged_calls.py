"""A call that both a host's hook and the gateway see is judged once; a call that was not judged is judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.events import PreToolUse
from hookline.hosts import judged_calls
from hookline.hosts.judged_calls import leave, take
from hookline.hosts.table import find
from hookline.replies import NOTHING, ask, deny, rewrite, stop
from tests.hosts.gateway.session import Session

HOOKS = """
from hookline import Hooks
from hookline.events import PostToolUse, PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, PostToolUse, match="mcp__.*")
def note(event):
    with open({log!r}, "a") as log:
        log.write(f"{{event.event_name}} {{event.tool_input['message']}}\\n")
"""


def event(name: str = "mcp__s__echo", **given: Any) -> PreToolUse:
    return PreToolUse(session_id="s", cwd="/", tool_name=name, tool_input=given)


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    judged_calls.folder().mkdir(parents=True)
    return judged_calls.folder()


def test_a_note_is_good_for_one_call_of_the_same_kind(notes: Path) -> None:
    """The same host, hooks, tool and input; what is denied leaves none, nor a question that the host cannot ask.

    A rewritten call is noted as it runs.
    """
    leave(find("claude"), ("--hooks", "h"), [event(a=1)], NOTHING)
    leave(find("claude"), (), [event(a=2)], deny("no"))
    leave(find("claude"), (), [event(a=3)], ask("?"))
    leave(find("claude"), (), [event(a=4)], rewrite({"a": 5}))
    leave(find("openhands"), (), [event(a=7)], ask("?"))
    leave(find("claude"), (), [event(a=8)], stop("enough"))
    leave(find("copilot"), (), [event("mcp__a__b-echo", a=6), event("mcp__a-b__echo", a=6)], NOTHING)
    wrong = [take("codex", ("--hooks", "h"), "echo", {"a": 1}), take("claude", (), "echo", {"a": 1}),
             take("claude", ("--hooks", "h"), "other", {"a": 1}), take("claude", (), "echo", {"a": 2}),
             take("claude", (), "echo", {"a": 4}), take("openhands", (), "echo", {"a": 7}),
             take("claude", (), "echo", {"a": 8})]  # fmt: skip

    assert wrong == [False] * 7
    assert [take("claude", ("--hooks", "h"), "echo", {"a": 1}) for _ in range(2)] == [True, False]
    assert take("claude", (), "echo", {"a": 3})
    assert take("claude", (), "echo", {"a": 5})
    assert take("copilot", (), "echo", {"a": 6})


def test_an_old_note_is_worth_nothing(notes: Path) -> None:
    """It is removed when it is found."""
    leave(find("claude"), (), [event(a=1)], NOTHING)
    [note] = notes.iterdir()
    os.utime(note, (0, 0))

    assert not take("claude", (), "echo", {"a": 1})
    assert list(notes.iterdir()) == []


def test_without_a_gateway_nothing_is_noted(notes: Path) -> None:
    """`install --mcp` makes the folder."""
    notes.rmdir()
    leave(find("claude"), (), [event(a=1)], NOTHING)

    assert not notes.exists()


def test_what_the_hosts_hook_judged_the_gateway_does_not_judge_again(tmp_path: Path) -> None:
    """Before and after; the next call, which only the gateway sees, is judged there."""
    log, hooks = tmp_path / "log.txt", tmp_path / "hooks.py"
    hooks.write_text(HOOKS.format(log=str(log)))
    payload = {"hook_event_name": "PreToolUse", "session_id": "x", "cwd": str(tmp_path), "tool_name": "mcp__s__echo",
               "tool_input": {"message": "once"}}  # fmt: skip
    answer = [sys.executable, "-m", "hookline.cli.main", "answer", "claude", "--hooks", str(hooks)]
    env = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run(answer, input=json.dumps(payload).encode(), env=env, check=True, capture_output=True)
    with Session(tmp_path, hooks=hooks, flags=("--agent", "claude")) as session:
        session.initialize()
        seen = [session.text("echo", message=word) for word in ("once", "once")]

    assert seen == ["echo: once"] * 2
    assert log.read_text().splitlines() == ["PreToolUse once", "PreToolUse once", "PostToolUse once"]
