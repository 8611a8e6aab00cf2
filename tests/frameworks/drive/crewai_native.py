"""CrewAI's `Crew.kickoff()`, with a model that has function calling: its calls run in threads."""

import json
from typing import Any

from hookline.frameworks.crewai import guarding
from tests.frameworks.drive.crewai_crew import Scripted, crew
from tests.frameworks.drive.scenarios import Seen, calls_of


class Native(Scripted):
    """Makes its calls as data, not in text."""

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self.seen.requests.append(str(messages))
        turn = next(self.turns)
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            return turn
        return [_call(f"{id(turn)}-{at}", name, given) for at, (name, given) in enumerate(calls_of(turn))]

    def supports_function_calling(self) -> bool:
        return True


def _call(use_id: str, name: str, given: Any) -> dict[str, Any]:
    return {"id": use_id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    with guarding(hooks, on_ask=on_ask):
        seen.answer = str(crew(seen, turns, prompt, inner, "main", model=Native).kickoff())
