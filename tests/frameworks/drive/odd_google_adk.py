"""Google ADK: two sets of hooks, rewrites that do not fit."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner

from hookline.frameworks.google_adk import HooklinePlugin
from tests.frameworks.drive.google_adk_runner import Scripted
from tests.frameworks.drive.google_adk_runner import answer as answer_of
from tests.frameworks.drive.odd import Seen, Watched, usual


def answer(seen: Seen, turns: Any, *hooks: Watched) -> str:
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    agent = LlmAgent(name="main", model=Scripted(seen=seen, turns=iter([*turns, "done"])), tools=[shell])
    plugins: list[Any] = [HooklinePlugin(one, name=f"hooks_{number}") for number, one in enumerate(hooks)]
    return asyncio.run(answer_of(InMemoryRunner(agent=agent, app_name="app", plugins=plugins), "go"))


CASES = usual(answer)
