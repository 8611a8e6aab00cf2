"""Microsoft Agent Framework: two sets of hooks, rewrites that do not fit."""

import asyncio
from typing import Any

from agent_framework import Agent

from hookline.adapters.agent_framework import HooklineMiddleware
from tests.adapters.drive.agent_framework_run import Client
from tests.adapters.drive.odd import LS, RM, Seen, Watched, deny_rm, misfit, played


def answer(seen: Seen, turns: Any, *hooks: Watched) -> str:
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    middleware = [HooklineMiddleware(one) for one in hooks]
    text: str = asyncio.run(Agent(Client(seen, turns, "m"), tools=[shell], middleware=middleware).run("go")).text
    return text


def two_sets() -> Any:
    seen, first, second = Seen(), Watched(), Watched(deny_rm)
    return played(seen, lambda: answer(seen, [[LS, RM]], first, second), first, second)


def misfitting_rewrite() -> Any:
    seen, hooks = Seen(), Watched(misfit)
    return played(seen, lambda: answer(seen, [LS], hooks), hooks)


CASES = {case.__name__: case for case in (two_sets, misfitting_rewrite)}
