"""pydantic-ai: a tool that asks for another try."""

from typing import Any

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import FunctionModel

from hookline.frameworks.pydantic_ai import HooklineCapability
from tests.frameworks.drive.odd import Seen, Watched, played, usual
from tests.frameworks.drive.pydantic_ai_agent import parts_of


def answer(seen: Seen, turns: Any, *hooks: Watched) -> str:
    script = iter([*turns, "done"])

    def model(messages: Any, info: Any) -> ModelResponse:
        seen.requests.append("\n".join(str(getattr(part, "content", "")) for one in messages for part in one.parts))
        return ModelResponse(parts=parts_of(next(script)))

    made = Agent(FunctionModel(model), capabilities=[HooklineCapability(one) for one in hooks])

    @made.tool_plain
    def shell(command: str) -> str:
        if command == "retry":
            raise ModelRetry("TRY_X")
        return seen.shell(command)

    return made.run_sync("go").output


def another_try() -> Any:
    seen, hooks = Seen(), Watched()
    return played(seen, lambda: answer(seen, [("shell", {"command": "retry"})], hooks), hooks)


CASES = usual(answer) | {case.__name__: case for case in (another_try,)}
