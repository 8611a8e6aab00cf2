"""Microsoft Agent Framework: two sets of hooks, rewrites that do not fit, runs that are cancelled."""

import asyncio
from functools import partial
from typing import Any

from agent_framework import Agent, ChatResponse, ResponseStream

from hookline.frameworks.agent_framework import HooklineMiddleware
from tests.frameworks.drive.agent_framework_run import Client
from tests.frameworks.drive.odd import Seen, Watched, cancelled, played, usual


def answer(seen: Seen, turns: Any, *hooks: Watched) -> str:
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    middleware = [HooklineMiddleware(one) for one in hooks]
    text: str = asyncio.run(Agent(Client(seen, turns, "m"), tools=[shell], middleware=middleware).run("go")).text
    return text


def cancelled_while_the_model_thinks(streamed: bool = False) -> Any:
    seen, hooks = Seen(), Watched()

    async def work() -> str:
        reached = asyncio.Event()

        class Slow(Client):
            def _inner_get_response(self, *, stream: bool = False, **more: Any) -> Any:
                async def whole() -> Any:
                    reached.set()
                    await asyncio.Event().wait()

                async def pieces() -> Any:
                    yield await whole()

                return ResponseStream(pieces(), finalizer=ChatResponse.from_updates) if stream else whole()

        made = Agent(Slow(seen, (), "m"), middleware=[HooklineMiddleware(hooks)])

        async def run() -> None:
            if not streamed:
                await made.run("go")
            else:
                async for _ in made.run("go", stream=True):
                    pass

        return await cancelled(run(), reached)

    return played(seen, lambda: asyncio.run(work()), hooks)


CASES = usual(answer) | {
    "cancelled_while_the_model_thinks": cancelled_while_the_model_thinks,
    "cancelled_while_the_model_thinks_streamed": partial(cancelled_while_the_model_thinks, True),
}
