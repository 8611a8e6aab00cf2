"""A small agent looks for itself before it answers (FACTS §8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hookline import AgentCheck, Hooks, Reply, Verdict, deny, keep_going, stop
from hookline.agent.hook_services import inspector
from hookline.agent.models.scripted import Scripted
from hookline.agent.tools import SessionState, ToolEnv, default_tools
from hookline.core.engine import Status
from hookline.events import Notification, PostToolUse, PreToolUse, Stop, SubagentStop, UserPromptSubmit
from hookline.events.base import Event
from hookline.runners import Question, Services

BASH = PreToolUse(session_id="s1", cwd="/p", tool_name="Bash", tool_input={"command": "ls"})
NO = {"ok": False, "reason": "no"}
WHY = "the agent's check was not met: no"


async def look(who: Any, event: Event = BASH, **options: Any) -> Verdict:
    async with Hooks() as hooks:
        hooks.services = Services(inspector=who)
        hooks.add(type(event), AgentCheck(prompt="look: $ARGUMENTS", model="small"), name="it", **options)
        return await hooks.fire(event)


def says(answer: Mapping[str, Any] | None) -> Any:
    async def inspect(question: Question) -> Mapping[str, Any] | None:
        assert question.text.startswith("look: {")
        assert question.model == "small"
        return answer

    return inspect


@pytest.mark.parametrize(
    "event, reply",
    [
        (BASH, deny(WHY)),
        (PostToolUse(tool_name="Bash"), deny(WHY)),
        (UserPromptSubmit(prompt="x"), deny(WHY)),
    ],
)
async def test_not_ok_is_an_ordinary_block(event: Event, reply: Reply) -> None:
    """The turn goes on; ok says nothing."""
    assert (await look(says(NO), event)).outcomes[0].reply == reply
    assert (await look(says({"ok": True}), event)).outcomes[0].reply == Reply()


@pytest.mark.parametrize("event", [Stop(), SubagentStop(agent_id="a", agent_type="t")])
async def test_not_ok_at_the_end_sends_the_agent_back(event: Event) -> None:
    """With the reason."""

    async def inspect(question: Question) -> Mapping[str, Any]:
        assert question.with_conversation
        return NO

    assert (await look(inspect, event)).outcomes[0].reply == keep_going(WHY)


async def test_where_nothing_can_be_blocked_it_ends_the_turn() -> None:
    """A notification cannot be taken back."""
    assert (await look(says(NO), Notification(message="m"))).outcomes[0].reply == stop(WHY)


@pytest.mark.parametrize("answer", [None, {}, {"ok": "no"}, {"ok": 1}])
@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_no_answer_is_a_failure(answer: Any, policy: Any) -> None:
    """And so is an answer of another shape."""
    verdict = await look(says(answer), on_failure=policy)

    assert verdict.outcomes[0].status is Status.FAILED
    assert verdict.blocked is (policy == "block")


async def test_nobody_to_look() -> None:
    """The failure says what to set."""
    verdict = await look(None, on_failure="block")
    assert "needs an agent, and this set of hooks has none; set `hooks.services.inspector`" in verdict.reason


def real(folder: Path, *turns: Any) -> tuple[Scripted, Any]:
    """The agent's own inspector, on a scripted model, with tools that read."""
    model, state = Scripted.of(*turns), SessionState(str(folder))
    reading = {name: tool for name, tool in default_tools().items() if tool.read_only}
    return model, inspector(model, lambda: reading, lambda: ToolEnv(state=state))


async def test_it_may_read_before_it_answers(tmp_path: Path) -> None:
    """A real file, read by a real tool; the answer is the one of StructuredOutput."""
    (tmp_path / "notes.txt").write_text("the password is swordfish\n")
    model, who = real(
        tmp_path,
        {"tools": [["Read", {"file_path": str(tmp_path / "notes.txt")}]]},
        {"tools": [["StructuredOutput", {"ok": False, "reason": "no"}]]},
    )
    verdict = await look(who)

    assert verdict.reason == WHY
    assert "swordfish" in str(model.requests[1].messages[-1])


async def test_it_cannot_write(tmp_path: Path) -> None:
    """Nobody asked a hook about its calls, so those that change something are refused."""
    model, who = real(
        tmp_path,
        {"tools": [["Bash", {"command": f"touch {tmp_path}/made"}]]},
        {"tools": [["Write", {"file_path": str(tmp_path / "made"), "content": "x"}]]},
        {"tools": [["StructuredOutput", {"ok": True, "reason": ""}]]},
    )
    verdict = await look(who)

    assert verdict.outcomes[0].status is Status.OK
    assert not (tmp_path / "made").exists()
    assert len(model.requests) == 3


async def test_one_nudge_then_no_verdict(tmp_path: Path) -> None:
    """A model that only talks is asked once more for its answer."""
    model, who = real(tmp_path, "hmm", "well")
    verdict = await look(who, on_failure="continue")

    assert len(model.requests) == 2
    assert verdict.outcomes[0].error == "got no answer from its agent"


async def test_an_answer_of_another_shape_may_be_given_again(tmp_path: Path) -> None:
    """The model is told what is wrong with it, as with any tool."""
    model, who = real(
        tmp_path,
        {"tools": [["StructuredOutput", {"fine": 1}]]},
        {"tools": [["StructuredOutput", {"ok": False, "reason": "no"}]]},
    )
    verdict = await look(who)

    assert verdict.reason == WHY
    assert "missing required field `ok`" in str(model.requests[1].messages[-1])
