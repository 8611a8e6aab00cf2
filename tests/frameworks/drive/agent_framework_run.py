"""Microsoft Agent Framework's `Agent`, without streaming."""

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

from hookline.frameworks.agent_framework import HooklineMiddleware
from tests.frameworks.drive.scenarios import Seen, calls_of


class Client(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Says what the script says, and remembers what it was asked."""

    def __init__(self, seen: Seen, turns: Any, prefix: str) -> None:
        super().__init__()
        self.seen, self.turns, self.prefix = seen, iter([*turns, *["done"] * 9]), prefix
        self.number = 0

    def says(self, messages: Any) -> list[Content]:
        parts = (part for one in messages for part in one.contents)
        self.seen.requests.append("\n".join(str(part.text or part.result) for part in parts))
        turn = next(self.turns)
        self.number += 1
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            return [Content.from_text(turn)]
        return [
            Content.from_function_call(call_id=f"{self.prefix}{self.number}-{at}", name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(calls_of(turn))
        ]

    def _inner_get_response(self, *, messages: Any, stream: bool = False, options: Any = None, **more: Any) -> Any:
        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=self.says(messages))])

        async def pieces() -> Any:
            yield ChatResponseUpdate(role="assistant", contents=self.says(messages))

        return ResponseStream(pieces(), finalizer=ChatResponse.from_updates) if stream else whole()


def agent(seen: Seen, turns: Any, hooks: Any, on_ask: Any, inner: Any, name: str) -> Any:
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    async def delegate(command: str) -> str:
        """Let another agent do it."""
        answer: str = (await agent(seen, inner, hooks, on_ask, (), "inner").run("go")).text
        return answer

    middleware = [HooklineMiddleware(hooks, on_ask=on_ask)]
    return Agent(Client(seen, turns, name), name=name, tools=[shell, delegate], middleware=middleware)


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    seen.answer = asyncio.run(agent(seen, turns, hooks, on_ask, inner, "main").run(prompt)).text
