"""A Stop hook whose script is not there has looked at nothing: it is a failure, not a reason to go on."""

from __future__ import annotations

import pytest

from hookline import Hooks
from hookline.core.hooks.hook import Command
from hookline.events import PreToolUse, Stop

MISSING = ["python3 nowhere.py", "dash nowhere.sh", "python3 ./hooks/nowhere.py --strict"]
SAID = [
    "echo 'No such file or directory' >&2; exit 2",
    "cat nowhere.txt; echo \"tests fail: can't open file 'x.py': [Errno 2] No such file\" >&2; exit 2",
    "name=other; echo \"python3: can't open file '/x/$name.py': [Errno 2] No such file or directory\" >&2; exit 2",
]


def stop() -> Stop:
    return Stop(session_id="s", transcript_path="", cwd="/", stop_hook_active=False)


@pytest.mark.parametrize("command", MISSING)
async def test_a_missing_script_does_not_send_the_agent_back(command: str) -> None:
    """It is told as a failure, and the agent may rest."""
    async with Hooks() as hooks:
        hooks.add(Stop, Command(command=command))
        verdict = await hooks.fire(stop())

    assert not verdict.keep_going
    assert len(verdict.failures) == 1


@pytest.mark.parametrize("command", SAID)
async def test_a_script_that_says_such_words_itself_does(command: str) -> None:
    """Only the interpreter's own line, about a file of the command, counts."""
    async with Hooks() as hooks:
        hooks.add(Stop, Command(command=command))
        verdict = await hooks.fire(stop())

    assert verdict.keep_going


@pytest.mark.parametrize("command", MISSING)
async def test_a_gate_stays_closed(command: str) -> None:
    """Before a tool, exit 2 denies, whoever says it."""
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command=command))
        event = PreToolUse(
            session_id="s", transcript_path="", cwd="/", tool_name="Bash", tool_input={}, tool_use_id="t"
        )
        verdict = await hooks.fire(event)

    assert verdict.blocked
