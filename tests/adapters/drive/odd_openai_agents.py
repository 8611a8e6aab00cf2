"""The OpenAI Agents SDK: agents that change after they were guarded."""

import asyncio
from typing import Any

from agents import Agent, Runner, function_tool

from hookline.adapters.openai_agents import guarded
from tests.adapters.drive.odd import LS, RM, Seen, Watched, deny_all, deny_rm, misfit, played
from tests.adapters.drive.openai_agents_run import Scripted


def shell_of(seen: Seen) -> Any:
    @function_tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    return shell


def agent(seen: Seen, *turns: Any, name: str = "main", tools: Any = None) -> Any:
    tools = [shell_of(seen)] if tools is None else tools
    return Agent(name=name, model=Scripted(seen, turns, name), tools=tools)


def answer(made: Any) -> Any:
    return asyncio.run(Runner.run(made, "go")).final_output


def two_sets() -> Any:
    seen, first, second = Seen(), Watched(), Watched(deny_rm)
    return played(seen, lambda: answer(guarded(guarded(agent(seen, [LS, RM]), first), second)), first, second)


def misfitting_rewrite() -> Any:
    seen, hooks = Seen(), Watched(misfit)
    return played(seen, lambda: answer(guarded(agent(seen, LS), hooks)), hooks)


def tool_added_later() -> Any:
    seen, hooks = Seen(), Watched(deny_all)
    made = guarded(agent(seen, LS, tools=[]), hooks)
    made.tools.append(shell_of(seen))
    return played(seen, lambda: answer(made), hooks)


def handoff_added_later() -> Any:
    seen, hooks = Seen(), Watched(deny_all)
    made = guarded(agent(seen, ("transfer_to_other", {})), hooks)
    made.handoffs.append(agent(seen, LS, name="other"))
    return played(seen, lambda: answer(made), hooks)


def cloned() -> Any:
    seen, hooks = Seen(), Watched(deny_all)
    made = guarded(agent(seen, LS), hooks).clone(name="clone", tools=[shell_of(seen)])
    return played(seen, lambda: answer(made), hooks)


def unguarded_agent_as_a_tool() -> Any:
    seen, hooks = Seen(), Watched()
    tool = agent(seen, LS, name="inner").as_tool("delegate", "Let another agent do it")
    return played(seen, lambda: answer(guarded(agent(seen, ("delegate", {}), tools=[tool]), hooks)), hooks)


def failure_made_a_text() -> Any:
    seen, hooks = Seen(), Watched()
    return played(seen, lambda: answer(guarded(agent(seen, ("shell", {"command": "fail"})), hooks)), hooks)


CASES = {
    case.__name__: case
    for case in (
        two_sets, misfitting_rewrite, tool_added_later, handoff_added_later, cloned, unguarded_agent_as_a_tool,
        failure_made_a_text,
    )
}  # fmt: skip
