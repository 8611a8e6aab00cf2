"""A Strands `Agent`."""

import json
from typing import Any

from strands import Agent, tool
from strands.models import Model

from hookline.frameworks.strands import HooklineProvider
from tests.frameworks.drive.scenarios import Seen, calls_of


class Scripted(Model):
    """Says what the script says, and remembers what it was asked."""

    def __init__(self, seen: Seen, turns: Any, prefix: str) -> None:
        self.seen, self.turns, self.prefix = seen, iter([*turns, *["done"] * 9]), prefix
        self.number = 0

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *args: Any, **options: Any) -> Any:
        yield {}

    async def stream(self, messages: Any, *args: Any, **options: Any) -> Any:
        self.seen.requests.append(json.dumps(messages))
        turn = next(self.turns)
        self.number += 1
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": turn}}}
            yield {"contentBlockStop": {}}
        else:
            for at, (name, given) in enumerate(calls_of(turn)):
                use = {"toolUseId": f"{self.prefix}{self.number}-{at}", "name": name}
                yield {"contentBlockStart": {"start": {"toolUse": use}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
                yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(turn, str) else "tool_use"}}


def agent(seen: Seen, turns: Any, hooks: Any, on_ask: Any, inner: Any, name: str) -> Any:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    @tool
    def delegate(command: str) -> str:
        """Let another agent do it."""
        return str(agent(seen, inner, hooks, on_ask, (), "inner")("go"))

    provider = HooklineProvider(hooks, on_ask=on_ask)
    model = Scripted(seen, turns, name)
    return Agent(name=name, model=model, tools=[shell, delegate], hooks=[provider], callback_handler=None)


def run(seen: Seen, turns: Any, prompt: str, hooks: Any, *, on_ask: Any, inner: Any) -> None:
    seen.answer = str(agent(seen, turns, hooks, on_ask, inner, "main")(prompt)).strip()
