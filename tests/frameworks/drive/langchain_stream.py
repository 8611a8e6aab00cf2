"""LangChain's `create_agent`, called with `stream`, token by token."""

from typing import Any

from langchain_core.messages import HumanMessage

from tests.frameworks.drive.langchain_sync import agent
from tests.frameworks.drive.scenarios import Seen


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    made = agent(seen, turns, hooks, on_ask, inner, "main")
    config = {"configurable": {"thread_id": "thread-1"}}
    for mode, part in made.stream({"messages": [HumanMessage(prompt)]}, config, stream_mode=["messages", "values"]):
        if mode == "values":
            seen.answer = part["messages"][-1].content
