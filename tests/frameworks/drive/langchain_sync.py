"""LangChain's `create_agent`, called with `invoke`."""

import json
from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from hookline.frameworks.langchain import HooklineMiddleware
from tests.frameworks.drive.scenarios import Seen, calls_of


class Model(GenericFakeChatModel):
    """Says what the script says, and remembers what it was asked."""

    seen: Any = None

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
        self.seen.requests.append("\n".join(f"{one.type}: {one.content}" for one in messages))
        return super()._generate(messages, *args, **options)

    def _stream(self, messages: Any, *args: Any, **options: Any) -> Any:
        said = self._generate(messages, *args, **options).generations[0].message
        calls = [{**call, "args": json.dumps(call["args"]), "index": at} for at, call in enumerate(said.tool_calls)]
        yield ChatGenerationChunk(message=AIMessageChunk(said.content, tool_call_chunks=calls))


def says(turns: Any, prefix: str) -> Iterator[AIMessage]:
    for number, turn in enumerate([*turns, *["done"] * 9]):
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            yield AIMessage(turn)
        else:
            calls = enumerate(calls_of(turn))
            asked = [{"name": name, "args": args, "id": f"{prefix}{number}-{at}"} for at, (name, args) in calls]
            yield AIMessage("", tool_calls=asked)


def agent(seen: Seen, turns: Any, hooks: Any, on_ask: Any, inner: Any, name: str) -> Any:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    @tool
    def delegate(command: str) -> str:
        """Let another agent do it."""
        other = agent(seen, inner, hooks, on_ask, (), "inner")
        answer: str = other.invoke({"messages": [HumanMessage("go")]})["messages"][-1].content
        return answer

    model = Model(messages=says(turns, name), seen=seen)
    return create_agent(model, [shell, delegate], middleware=[HooklineMiddleware(hooks, on_ask=on_ask)], name=name)


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    made = agent(seen, turns, hooks, on_ask, inner, "main")
    result = made.invoke({"messages": [HumanMessage(prompt)]}, {"configurable": {"thread_id": "thread-1"}})
    seen.answer = result["messages"][-1].content
