"""A Strands `Agent`, its events consumed as they come."""

import asyncio
from typing import Any

from tests.frameworks.drive.scenarios import Seen
from tests.frameworks.drive.strands_agent import agent


async def stream(made: Any, prompt: str) -> str:
    answer = ""
    async for event in made.stream_async(prompt):
        if "result" in event:
            answer = str(event["result"])
    return answer.strip()


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    seen.answer = asyncio.run(stream(agent(seen, turns, hooks, on_ask, inner, "main"), prompt))
