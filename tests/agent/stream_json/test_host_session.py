"""A host drives `hookline run` over real pipes: what it may rely on, however early it closes its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.agent.driving import bash
from tests.environ import clean_environ

ASKED = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["gate"]}]}}


def drive(
    folder: Path, turns: list[Any], decision: str, *flags: str, then: Callable[[Any], None]
) -> list[dict[str, Any]]:
    """Initialize, do `then` with stdin, answer every hook with `decision`; what was said, in order."""
    (folder / "turns.json").write_text(json.dumps(turns))
    argv = [sys.executable, "-m", "hookline", "run", "--bare", "--model", "scripted:turns.json",
            "--input-format", "stream-json", "--output-format", "stream-json", "--allowedTools", "Bash",
            *flags]  # fmt: skip
    env = clean_environ(folder, PATH=os.environ["PATH"])
    said = []
    with subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdin
        assert run.stdout
        _tell(run.stdin, {"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize", **ASKED}})
        for line in run.stdout:
            said.append(note := json.loads(line))
            if note["type"] == "control_response":
                then(run.stdin)
            elif note["type"] == "control_request":
                specific = {"hookEventName": "PreToolUse", "permissionDecision": decision}
                answer = {"subtype": "success", "request_id": note["request_id"],
                          "response": {"hookSpecificOutput": specific}}  # fmt: skip
                _tell(run.stdin, {"type": "control_response", "response": answer})
            elif note["type"] == "result":
                run.stdin.close()
    return said


def _tell(stdin: Any, message: dict[str, Any]) -> None:
    if not stdin.closed:
        stdin.write(json.dumps(message) + "\n")
        stdin.flush()


def results(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [note for note in said if note["type"] == "result"]


def _prompt(stdin: Any) -> None:
    _tell(stdin, {"type": "user", "message": {"role": "user", "content": "go"}})


def test_a_deferred_call_is_judged_though_the_host_has_nothing_more_to_say(tmp_path: Path) -> None:
    """The official SDK closes stdin as soon as `initialize` is answered, if its prompt is empty."""
    turns = [bash("touch made"), {"text": "done"}]
    (first,) = results(drive(tmp_path, turns, "defer", then=_prompt))
    again = drive(tmp_path, turns[1:], "deny", "--resume", first["session_id"], then=lambda stdin: stdin.close())

    asked = [note["request"]["tool_use_id"] for note in again if note["type"] == "control_request"]
    assert asked == [first["deferred_tool_use"]["id"]]
    assert [(note["result"], note["is_error"]) for note in results(again)] == [("done", False)]
    assert not (tmp_path / "made").exists()
