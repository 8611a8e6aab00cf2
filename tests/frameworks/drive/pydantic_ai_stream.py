"""A pydantic-ai `Agent`, its events consumed as they come."""

import asyncio
from typing import Any

from pydantic_ai import AgentRunResultEvent

from tests.frameworks.drive.pydantic_ai_agent import agent
from tests.frameworks.drive.scenarios import Seen


async def stream(made: Any, prompt: str) -> str:
    answer = ""
    async with made.run_stream_events(prompt) as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                answer = str(event.result.output)
    return answer


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    seen.answer = asyncio.run(stream(agent(seen, turns, hooks, on_ask, inner, "main"), prompt))
