"""`hookline pipe`: event lines of every dialect in, one answer line each."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.cli.place import HOOKLINE, Place, command, denies

CLAUDE = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}
SNAKE = {"event": "pre_tool_use", "tool_name": "Bash", "tool_input": {"command": "ls"}}


def lines(*said: Any) -> str:
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in said)


def test_each_line_is_answered_in_its_own_dialect(place: Place) -> None:
    """Claude's, seeds/002's and seeds/004's side by side."""
    place.hooks("PreToolUse", denies("never"))
    done = place.run("pipe", "--trust", stdin=lines(CLAUDE, SNAKE, {"type": "hook_event", **CLAUDE}))

    assert done.returncode == 0, done.stderr
    claude, snake, message = map(json.loads, done.stdout.splitlines())
    assert claude["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert snake["continue_execution"] is False
    assert message["type"] == "hook_response"


def test_a_dialect_may_be_forced(place: Place) -> None:
    """`spec` reads like Claude's own."""
    place.hooks("PreToolUse", denies("never"))
    done = place.run("pipe", "--trust", "--dialect", "spec", stdin=lines(CLAUDE, SNAKE))

    first, second = map(json.loads, done.stdout.splitlines())
    assert first["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "error" in second
    assert done.returncode == 1


def test_garbage_is_answered_and_the_next_line_is_read(place: Place) -> None:
    """One answer per line that holds anything, in order; exit code 1 says that some could not be read."""
    place.hooks("PreToolUse", command("true"))
    garbage = ["{", "[1]", '"x"', "null", "{}", '{"hook_event_name": "Zebra"}', '{"hook_event_name": 7}', "\x00\x01"]
    done = place.run("pipe", "--trust", stdin=lines(CLAUDE, *garbage, "", "   ", CLAUDE))
    answers = [json.loads(line) for line in done.stdout.splitlines()]

    assert done.returncode == 1
    assert len(answers) == len(garbage) + 2
    assert ["error" in answer for answer in answers] == [False, *[True] * len(garbage), False]
    assert "Traceback" not in done.stderr


def test_the_last_line_needs_no_newline(place: Place) -> None:
    """And no lines at all is no error."""
    place.hooks("PreToolUse", denies("never"))
    done = place.run("pipe", "--trust", stdin=json.dumps(CLAUDE))
    assert "never" in done.stdout
    none = place.run("pipe", "--trust", stdin="")
    assert (none.returncode, none.stdout) == (0, "")


def test_answers_come_as_they_are_ready_and_ctrl_c_ends_it(place: Place) -> None:
    """An agent can talk to it line by line; with stdin still open it can be ended."""
    import signal

    place.hooks("PreToolUse", denies("never"))
    running = subprocess.Popen(
        [*HOOKLINE, "pipe", "--trust"], cwd=place.project, env=place.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert running.stdin is not None
    assert running.stdout is not None
    for _ in range(2):
        running.stdin.write(lines(CLAUDE).encode())
        running.stdin.flush()
        assert b"never" in running.stdout.readline()
    running.send_signal(signal.SIGINT)

    assert running.wait(60) == 130
    assert running.stderr is not None
    assert b"Traceback" not in running.stderr.read()
    for stream in (running.stdin, running.stdout, running.stderr):
        stream.close()
