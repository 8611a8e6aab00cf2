"""What hooks are given of the agent: the model that judges hears the conversation it is asked about."""

from __future__ import annotations

from pathlib import Path

from hookline import Hooks, Prompt
from hookline.agent.hook_services import judge
from hookline.agent.messages import Assistant
from hookline.agent.models.scripted import Scripted
from hookline.events import PreToolUse, SubagentStop
from hookline.runners import Services
from tests.agent.driving import agent_on, bash

SUBAGENT = {"tools": [["Agent", {"description": "d", "prompt": "SUB", "run_in_background": False}]]}


async def test_whether_a_subagent_may_rest_is_judged_by_its_own_conversation(tmp_path: Path) -> None:
    """A prompt hook on SubagentStop is asked with what the subagent said, not with what the main agent did."""
    hooks = Hooks()
    hooks.add(SubagentStop, Prompt(prompt="done?"), name="done")
    judging = Scripted.of('{"ok": true}')
    lanes = {"sub": {"first": "^SUB", "turns": [{"text": "sub answer"}]}}
    async with agent_on(tmp_path, SUBAGENT, "final", hooks=hooks, lanes=lanes) as agent:
        hooks.services = Services(judge=judge(judging, agent.conversation))
        await agent.run("go")

    (asked,) = judging.requests
    assert [message.text for message in asked.messages if isinstance(message, Assistant)] == ["sub answer"]


async def test_an_agent_lends_its_model_to_prompt_hooks(tmp_path: Path) -> None:
    """Whoever gave the set another judge is asked instead; what was lent goes with the agent."""
    hooks = Hooks()
    hooks.add(PreToolUse, Prompt(prompt="safe?"), match="Bash", name="second-opinion")
    lanes = {"judge": {"first": "safe", "turns": [{"text": '{"ok": false, "reason": "NOTSAFE"}'}]}}
    async with agent_on(tmp_path, bash("touch ran"), "final", hooks=hooks, lanes=lanes) as agent:
        result = await agent.run("go")

    assert result.reason == "hook_stopped"
    assert not (tmp_path / "ran").exists()
    assert hooks.services == Services()

    own = judge(Scripted.of(lanes={"all": {"first": "", "turns": [{"text": '{"ok": true}'}]}}))
    hooks.services = Services(judge=own)
    async with agent_on(tmp_path, bash("touch ran"), "final", hooks=hooks) as agent:
        await agent.run("go")

    assert (tmp_path / "ran").exists()
    assert hooks.services.judge is own
