"""Strands: tool uses that are not what they should be."""

from typing import Any

from strands import Agent, tool

from hookline.adapters.strands import HooklineProvider
from tests.adapters.drive.odd import LS, RM, Seen, Watched, deny_rm, played, usual
from tests.adapters.drive.strands_agent import Scripted


class SameId(Scripted):
    """Gives all its calls one id."""

    async def stream(self, *args: Any, **options: Any) -> Any:
        async for event in super().stream(*args, **options):
            use = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
            if use is not None:
                use["toolUseId"] = "same"
            yield event


def answer(seen: Seen, turns: Any, *hooks: Watched, model: Any = Scripted) -> str:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    providers = [HooklineProvider(one) for one in hooks]
    agent = Agent(name="main", model=model(seen, turns, "m"), tools=[shell], hooks=providers, callback_handler=None)
    return str(agent("go")).strip()


def input_that_is_no_object() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)
    return played(seen, lambda: answer(seen, [("shell", ["rm"])], hooks), hooks)


def ids_repeated() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)
    return played(seen, lambda: answer(seen, [[LS, RM, ("shell", {"command": "pwd"})]], hooks, model=SameId), hooks)


CASES = usual(answer) | {case.__name__: case for case in (input_that_is_no_object, ids_repeated)}
