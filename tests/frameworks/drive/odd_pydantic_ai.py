"""pydantic-ai: a tool that asks for another try, and output functions."""

import asyncio
from functools import partial
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, TextOutput, ToolOutput
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from hookline.frameworks.pydantic_ai import HooklineCapability
from tests.frameworks.drive.odd import Seen, Watched, cancelled, deny_all, deny_rm, misfit, played, stop_at_rm, usual
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


class Report(BaseModel):
    command: str


def output_function(kind: str, judge: Any = deny_rm, *, streamed: bool = False) -> Any:
    """An agent whose last answer is the argument of a function that does something."""
    seen, hooks = Seen(), Watched(judge)

    def send(command: str) -> str:
        return seen.shell(command)

    def send_report(report: Report) -> str:
        return seen.shell(report.command)

    kinds: dict[str, Any] = {
        "arguments": send,
        "model": send_report,
        "text": TextOutput(send),
        "tool": ToolOutput(send),
    }
    commands = iter(["rm -rf /", "ls", "ls", "ls"])

    def says(info: Any) -> Any:
        command = next(commands)
        if kind == "text":
            return TextPart(command)
        return ToolCallPart(info.output_tools[0].name, {"command": command})

    def remember(messages: Any) -> None:
        seen.requests.append("\n".join(str(getattr(part, "content", "")) for one in messages for part in one.parts))

    def model(messages: Any, info: Any) -> ModelResponse:
        remember(messages)
        return ModelResponse(parts=[says(info)])

    async def stream(messages: Any, info: Any) -> Any:
        remember(messages)
        part = says(info)
        if kind == "text":
            yield part.content
        else:
            yield {0: DeltaToolCall(name=part.tool_name, json_args=part.args_as_json_str(), tool_call_id="c")}

    made: Any = Agent(
        FunctionModel(model, stream_function=stream), output_type=kinds[kind], capabilities=[HooklineCapability(hooks)]
    )

    async def run_stream() -> Any:
        async with made.run_stream("go") as result:
            return await result.get_output()

    return played(seen, lambda: asyncio.run(run_stream()) if streamed else made.run_sync("go").output, hooks)


def cancelled_while_the_model_thinks() -> Any:
    seen, hooks = Seen(), Watched()

    async def work() -> str:
        reached = asyncio.Event()

        async def model(messages: Any, info: Any) -> ModelResponse:
            reached.set()
            await asyncio.Event().wait()
            return ModelResponse(parts=[])

        made = Agent(FunctionModel(model), capabilities=[HooklineCapability(hooks)])
        return await cancelled(made.run("go"), reached)

    return played(seen, lambda: asyncio.run(work()), hooks)


CASES = (
    {
        **{f"output_{kind}": partial(output_function, kind) for kind in ("arguments", "model", "text", "tool")},
        **{f"output_{kind}_streamed": partial(output_function, kind, streamed=True) for kind in ("arguments", "text")},
        "output_denied": partial(output_function, "arguments", deny_all),
        "output_rewritten": partial(output_function, "arguments", misfit),
        "output_stopped": partial(output_function, "arguments", stop_at_rm),
    }
    | usual(answer)
    | {case.__name__: case for case in (another_try, cancelled_while_the_model_thinks)}
)
