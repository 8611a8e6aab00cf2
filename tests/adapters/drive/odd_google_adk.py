"""Google ADK: two sets of hooks, rewrites that do not fit."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner

from hookline.adapters.google_adk import HooklinePlugin
from tests.adapters.drive.google_adk_runner import Scripted
from tests.adapters.drive.google_adk_runner import answer as answer_of
from tests.adapters.drive.odd import LS, RM, Seen, Watched, deny_rm, misfit, played


def answer(seen: Seen, turns: Any, *hooks: Watched) -> str:
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    agent = LlmAgent(name="main", model=Scripted(seen=seen, turns=iter([*turns, "done"])), tools=[shell])
    plugins: list[Any] = [HooklinePlugin(one, name=f"hooks_{number}") for number, one in enumerate(hooks)]
    return asyncio.run(answer_of(InMemoryRunner(agent=agent, app_name="app", plugins=plugins), "go"))


def two_sets() -> Any:
    seen, first, second = Seen(), Watched(), Watched(deny_rm)
    return played(seen, lambda: answer(seen, [[LS, RM]], first, second), first, second)


def misfitting_rewrite() -> Any:
    seen, hooks = Seen(), Watched(misfit)
    return played(seen, lambda: answer(seen, [LS], hooks), hooks)


CASES = {case.__name__: case for case in (two_sets, misfitting_rewrite)}
