"""Microsoft Agent Framework's `Agent`, its updates consumed as they come, in a session."""

import asyncio
from typing import Any

from tests.frameworks.drive.agent_framework_run import agent
from tests.frameworks.drive.scenarios import Seen


async def stream(made: Any, prompt: str) -> str:
    updates = made.run(prompt, stream=True, session=made.create_session())
    return "".join([update.text async for update in updates])


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    seen.answer = asyncio.run(stream(agent(seen, turns, hooks, on_ask, inner, "main"), prompt))
