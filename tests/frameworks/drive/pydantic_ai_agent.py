"""A pydantic-ai `Agent`."""

import json
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from hookline.frameworks.pydantic_ai import HooklineCapability
from tests.frameworks.drive.scenarios import Seen, calls_of


def parts_of(turn: Any) -> Any:
    return [TextPart(turn)] if isinstance(turn, str) else [ToolCallPart(*call) for call in calls_of(turn)]


def agent(seen: Seen, turns: Any, hooks: Any, on_ask: Any, inner: Any, name: str) -> Any:
    script = iter([*turns, *["done"] * 9])

    def model(messages: Any, info: Any) -> ModelResponse:
        seen.requests.append("\n".join(str(getattr(part, "content", "")) for one in messages for part in one.parts))
        turn = next(script)
        if isinstance(turn, Exception):
            raise turn
        return ModelResponse(parts=parts_of(turn))

    async def pieces(messages: Any, info: Any) -> Any:
        for at, part in enumerate(model(messages, info).parts):
            text = isinstance(part, TextPart)
            yield part.content if text else {at: DeltaToolCall(part.tool_name, json.dumps(part.args))}

    made = Agent(
        FunctionModel(model, stream_function=pieces), name=name, capabilities=[HooklineCapability(hooks, on_ask=on_ask)]
    )

    @made.tool_plain
    def shell(command: str) -> str:
        return seen.shell(command)

    @made.tool_plain
    async def delegate(command: str) -> str:
        result = await agent(seen, inner, hooks, on_ask, (), "inner").run("go")
        answer: str = result.output
        return answer

    return made


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    seen.answer = agent(seen, turns, hooks, on_ask, inner, "main").run_sync(prompt).output
