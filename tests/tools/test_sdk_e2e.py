"""The model that the official SDK's tests are run on: it does what a sentence of theirs says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.sdk_e2e import answer, events, instance

SCHEMA = {"type": "object", "properties": {"words": {"type": "array"}, "count": {"type": "number"}}}


def asked(prompt: str, *later: Any, tools: tuple[str, ...] = ()) -> dict[str, Any]:
    """A request to the model, after some calls and their results."""
    messages = [{"role": "user", "content": [{"type": "text", "text": prompt}]}, *later]
    return {"messages": messages, "tools": [{"name": name, "input_schema": SCHEMA} for name in tools]}


def test_it_does_what_the_prompt_says_and_then_answers() -> None:
    """One call at a time, of the tools that it is offered; a word that it should say it says."""
    rows: list[tuple[str, tuple[str, ...], str, Any]] = [
        ("Run: echo 'x'", (), "Bash", "echo 'x'"),
        ("Run the command: touch /x/y", (), "Bash", "touch /x/y"),
        ("create the file /x/y containing exactly the text hello.", (), "Write", "/x/y"),
        ("Use the Agent tool with subagent_type 'greeter', prompt 'say hi'", ("Task",), "Task", "greeter"),
        ("Call the mcp__test__echo tool", ("mcp__test__echo",), "mcp__test__echo", ["Hello", "world"]),
        ("Call the mcp__test__echo tool", ("ToolSearch",), "ToolSearch", "select:mcp__test__echo"),
    ]
    for prompt, tools, name, given in rows:
        (call,) = answer(asked(prompt, tools=tools))
        assert (call["name"], given in call["input"].values()) == (name, True), prompt
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}]}
        if name != "ToolSearch":
            (done,) = answer(asked(prompt, {"role": "assistant", "content": [call]}, result, tools=tools))
            assert done["type"] == "text", prompt
    assert answer(asked("Reply with exactly: two")) == [{"type": "text", "text": "two"}]


def test_it_thinks_when_it_may_and_streams_what_it_says() -> None:
    """Blocks begin empty and grow."""
    thought, said = answer({**asked("hi"), "thinking": {"type": "enabled"}})
    kinds = [event["type"] for event in events({"content": [thought, said], "stop_reason": "end_turn"})]

    assert (thought["type"], said["type"]) == ("thinking", "text")
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
    assert instance(SCHEMA) == {"words": ["Hello", "world"], "count": 1}


def test_a_folder_that_is_not_a_checkout_is_refused(tmp_path: Path) -> None:
    """It says what to give."""
    argv = [sys.executable, "-m", "tools.sdk_e2e", str(tmp_path)]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)

    assert (done.returncode, "has no folder `e2e-tests`" in done.stderr) == (2, True)
