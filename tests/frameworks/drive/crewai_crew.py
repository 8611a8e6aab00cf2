"""CrewAI's `Crew.kickoff()`, its agent calling tools in text."""

import json
import os
from typing import Any

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from hookline.frameworks.crewai import guarding
from tests.frameworks.drive.scenarios import Seen


class Scripted(BaseLLM):
    """Says what the script says, and remembers what it was asked."""

    seen: Any = None
    turns: Any = None

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        self.seen.requests.append(str(messages))
        turn = next(self.turns)
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            return f"Thought: I now know\nFinal Answer: {turn}"
        return f"Thought: so\nAction: {turn[0]}\nAction Input: {json.dumps(turn[1])}"

    def supports_function_calling(self) -> bool:
        return False

    def supports_stop_words(self) -> bool:
        return True

    def get_context_window_size(self) -> int:
        return 8000


def one_by_one(turns: Any) -> Any:
    """In text there is one call a turn."""
    return [one for turn in turns for one in (turn if isinstance(turn, list) else [turn])]


def crew(seen: Seen, turns: Any, prompt: str, inner: Any, name: str, model: Any = Scripted) -> Any:
    @tool("shell")
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    @tool("delegate")
    def delegate(command: str) -> str:
        """Let another crew do it."""
        return str(crew(seen, inner, "go", (), "inner", model).kickoff())

    script = iter([*(one_by_one(turns) if model is Scripted else turns), *["done"] * 9])
    llm = model(model="scripted", seen=seen, turns=script)
    agent = Agent(role=name, goal="g", backstory="b", llm=llm, tools=[shell, delegate], max_retry_limit=0)
    return Crew(name=name, agents=[agent], tasks=[Task(description=prompt, expected_output="e", agent=agent)])


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    with guarding(hooks, on_ask=on_ask):
        seen.answer = str(crew(seen, turns, prompt, inner, "main").kickoff())
