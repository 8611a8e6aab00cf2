"""Google ADK's `LlmAgent` in a runner."""

import asyncio
import logging
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from hookline.frameworks.google_adk import HooklinePlugin
from tests.frameworks.drive.scenarios import Seen, calls_of

logging.getLogger("google_adk").setLevel(logging.CRITICAL)


class Scripted(BaseLlm):
    """Says what the script says, and remembers what it was asked."""

    model: str = "scripted"
    seen: Any = None
    turns: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        parts = [part for one in llm_request.contents for part in one.parts]
        texts = (part.text or (part.function_response.response if part.function_response else "") for part in parts)
        self.seen.requests.append("\n".join(str(text) for text in texts))
        turn = next(self.turns)
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            made = [types.Part(text=turn)]
        else:
            asked = [types.FunctionCall(name=name, args=_arguments(name, given)) for name, given in calls_of(turn)]
            made = [types.Part(function_call=one) for one in asked]
        yield LlmResponse(content=types.Content(role="model", parts=made))


def _arguments(name: str, given: Any) -> Any:
    return {"request": "go"} if name == "delegate" else given


def agent(seen: Seen, turns: Any, inner: Any, name: str) -> Any:
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    tools: list[Any] = [shell]
    if inner:
        tools.append(AgentTool(agent(seen, inner, (), "delegate")))
    model = Scripted(seen=seen, turns=iter([*turns, *["done"] * 9]))
    return LlmAgent(name=name, description="an agent", model=model, tools=tools)


async def answer(runner: Any, prompt: str) -> str:
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    texts: list[str] = []
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        if event.is_final_response() and event.content:
            texts += [part.text for part in event.content.parts if part.text]
    return "\n".join(texts)


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    plugins = [HooklinePlugin(hooks, on_ask=on_ask)]
    runner = InMemoryRunner(agent=agent(seen, turns, inner, "main"), app_name="app", plugins=plugins)
    seen.answer = asyncio.run(answer(runner, prompt))
