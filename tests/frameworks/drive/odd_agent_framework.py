"""Microsoft Agent Framework: two sets of hooks, rewrites that do not fit."""

import asyncio
from typing import Any

from agent_framework import Agent

from hookline.frameworks.agent_framework import HooklineMiddleware
from tests.frameworks.drive.agent_framework_run import Client
from tests.frameworks.drive.odd import Seen, Watched, usual


def answer(seen: Seen, turns: Any, *hooks: Watched) -> str:
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    middleware = [HooklineMiddleware(one) for one in hooks]
    text: str = asyncio.run(Agent(Client(seen, turns, "m"), tools=[shell], middleware=middleware).run("go")).text
    return text


CASES = usual(answer)
