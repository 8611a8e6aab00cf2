"""Subagents: SubagentStop hears how each of them ended, with what it was asked to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.agent.context.definitions import AgentDefinition
from hookline.events import SubagentStart, SubagentStop
from hookline.replies import Reply, keep_going
from tests.agent.driving import agent_on, bash

FAILS = {"status": 400, "error": {"error": {"type": "invalid_request_error", "message": "no such model"}}}
OUTCOMES: dict[str, tuple[list[Any], bool, str]] = {
    "done": ([{"text": "done"}], True, ""),
    "the model fails": ([FAILS], False, "no such model"),
    "the model fails later": ([bash("true"), FAILS], False, "no such model"),
    "too many turns": ([bash("true"), bash("true"), {"text": "never"}], False, "maximum number of turns"),
}


def agent_call(**more: Any) -> dict[str, Any]:
    given = {"description": "look around", "prompt": "SUB: look", "subagent_type": "scout", **more}
    return {"tools": [["Agent", given]]}


@pytest.mark.parametrize("background", [False, True], ids=["waited for", "in the background"])
@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_its_end_is_told_with_success_and_error(outcome: str, background: bool, tmp_path: Path) -> None:
    """Once, whichever way it ended; a hook cannot send one back to work that failed."""
    turns, success, error = OUTCOMES[outcome]
    hooks = Hooks()
    started: list[SubagentStart] = []
    ended: list[SubagentStop] = []

    @hooks.on(SubagentStart)
    async def start(event: SubagentStart) -> None:
        started.append(event)

    @hooks.on(SubagentStop)
    async def stop(event: SubagentStop) -> Reply | None:
        ended.append(event)
        return None if event.success else keep_going("try again")

    lanes = {"sub": {"first": "^SUB", "turns": turns}}
    scout = {"scout": AgentDefinition(name="scout", prompt="p", max_turns=2)}
    call = agent_call(run_in_background=background)
    async with agent_on(tmp_path, call, "done", "done", lanes=lanes, hooks=hooks, agents=scout) as agent:
        await agent.run("go")
        while await agent.background() is not None:
            pass

    assert [event.description for event in started] == ["look around"]
    [end] = ended
    assert (end.description, end.success, end.agent_type) == ("look around", success, "scout")
    assert error in (end.error or "")
    assert bool(end.error) is not success
