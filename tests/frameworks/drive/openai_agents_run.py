"""The OpenAI Agents SDK's `Runner.run`."""

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from hookline.frameworks.openai_agents import guarded
from tests.frameworks.drive.scenarios import Seen, calls_of

set_tracing_disabled(True)


class Scripted(Model):
    """Says what the script says, and remembers what it was asked."""

    def __init__(self, seen: Seen, turns: Any, prefix: str) -> None:
        self.seen, self.turns, self.prefix = seen, iter([*turns, *["done"] * 9]), prefix
        self.number = 0

    def says(self, instructions: Any, input: Any) -> Any:
        self.seen.requests.append(json.dumps([instructions, input], default=str))
        turn = next(self.turns)
        self.number += 1
        use_id = f"{self.prefix}{self.number}"
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            text = ResponseOutputText(type="output_text", text=turn, annotations=[])
            message = ResponseOutputMessage(
                id=use_id, type="message", role="assistant", status="completed", content=[text]
            )
            return [message]
        return [_call(f"{use_id}-{at}", name, given) for at, (name, given) in enumerate(calls_of(turn))]

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        return ModelResponse(output=self.says(system_instructions, input), usage=Usage(), response_id=None)

    async def stream_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
        response = Response(
            id="r", created_at=0, model="m", object="response", output=self.says(system_instructions, input),
            parallel_tool_calls=False, tool_choice="auto", tools=[],
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)


def _call(use_id: str, name: str, given: Any) -> Any:
    arguments = json.dumps({"input": "go"} if name == "delegate" else given)
    return ResponseFunctionToolCall(type="function_call", call_id=use_id, name=name, arguments=arguments, id=use_id)


def agent(seen: Seen, turns: Any, hooks: Any, on_ask: Any, inner: Any, name: str) -> Any:
    @function_tool(failure_error_function=None)
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    tools: list[Any] = [shell]
    if inner:
        tools.append(agent(seen, inner, hooks, on_ask, (), "inner").as_tool("delegate", "Let another agent do it"))
    return guarded(Agent(name=name, model=Scripted(seen, turns, name), tools=tools), hooks, on_ask=on_ask)


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    result = asyncio.run(Runner.run(agent(seen, turns, hooks, on_ask, inner, "main"), prompt))
    seen.answer = result.final_output
