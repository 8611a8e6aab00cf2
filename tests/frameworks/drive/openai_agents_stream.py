"""The OpenAI Agents SDK's `Runner.run_streamed`."""

import asyncio
from typing import Any

from agents import Runner

from tests.frameworks.drive.openai_agents_run import agent
from tests.frameworks.drive.scenarios import Seen


async def stream(made: Any, prompt: str) -> str:
    result = Runner.run_streamed(made, prompt)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    seen.answer = asyncio.run(stream(agent(seen, turns, hooks, on_ask, inner, "main"), prompt))
