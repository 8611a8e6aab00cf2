"""What a tool call costs in one framework: bare, with hooks of the framework's own, and with Hookline's adapter.

The framework's own hooks do nothing, at the same points that the adapter uses; the adapter asks one hook.

Runs in the framework's own environment (`make frameworks`): `python bench/adapter_probe.py pydantic-ai` prints JSON:
seconds of processor time per tool call: what the framework's own hooks add to none, and what the adapter adds to
those. The three take turns, and the medians of the rounds' differences count.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from hookline import Hooks
from hookline.events import PreToolUse

FEW, MANY, ROUNDS = 2, 22, 15
Run = Callable[[int], Awaitable[Any]]


def hooks_with_one() -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse)
    async def nothing(event: PreToolUse) -> None:
        return None

    return hooks


def pydantic_ai(kind: str) -> Run:
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    class Own(AbstractCapability):
        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            return request_context

        async def after_node_run(self, ctx: Any, *, node: Any, result: Any) -> Any:
            return result

        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            return await handler(args)

        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            return args

        async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
            return result

    def capabilities() -> list[Any]:
        if kind == "ours":
            from hookline.adapters.pydantic_ai import HooklineCapability

            return [HooklineCapability(hooks_with_one())]
        return [Own()] if kind == "own" else []

    given = capabilities()

    async def run(calls: int) -> None:
        left = iter(range(calls))

        def model(messages: Any, info: Any) -> Any:
            done = next(left, None) is None
            return ModelResponse(parts=[TextPart("done") if done else ToolCallPart("shell", {"command": "ls"})])

        agent = Agent(FunctionModel(model), capabilities=given)
        agent.tool_plain(shell)
        await agent.run("go", usage_limits=UsageLimits(request_limit=None))

    return run


def shell(command: str) -> str:
    """Run a command."""
    return command


def strands(kind: str) -> Run:  # noqa: C901 - a model, a provider and a run, each of a few lines
    from strands import Agent, tool
    from strands.hooks import AfterToolCallEvent, AfterToolsEvent, BeforeToolCallEvent, HookProvider
    from strands.models import Model

    class Scripted(Model):
        def __init__(self, calls: int) -> None:
            self.left = iter(range(calls))

        def update_config(self, **config: Any) -> None: ...

        def get_config(self) -> Any:
            return {}

        async def structured_output(self, *args: Any, **options: Any) -> Any:
            yield {}

        async def stream(self, *args: Any, **options: Any) -> Any:
            number = next(self.left, None)
            call = None if number is None else {"toolUse": {"toolUseId": f"t{number}", "name": "shell"}}
            delta = {"text": "done"} if call is None else {"toolUse": {"input": '{"command": "ls"}'}}
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": call or {}}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use" if call else "end_turn"}}

    class Own(HookProvider):
        def register_hooks(self, registry: Any, **options: Any) -> None:
            for event in (BeforeToolCallEvent, AfterToolCallEvent, AfterToolsEvent):
                registry.add_callback(event, self.nothing)

        async def nothing(self, event: Any) -> None: ...

    def providers() -> list[Any]:
        if kind == "ours":
            from hookline.adapters.strands import HooklineProvider

            return [HooklineProvider(hooks_with_one())]
        return [Own()] if kind == "own" else []

    given, tools = providers(), [tool(shell)]

    async def run(calls: int) -> None:
        agent = Agent(model=Scripted(calls), tools=tools, hooks=given, callback_handler=None)
        await agent.invoke_async("go")

    return run


def langchain(kind: str) -> Run:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    class Own(AgentMiddleware):
        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def abefore_model(self, state: Any, runtime: Any) -> None: ...

        async def aafter_model(self, state: Any, runtime: Any) -> None: ...

    def middleware() -> list[Any]:
        if kind == "ours":
            from hookline.adapters.langchain import HooklineMiddleware

            return [HooklineMiddleware(hooks_with_one())]
        return [Own()] if kind == "own" else []

    given, tools = middleware(), [tool(shell)]

    async def run(calls: int) -> None:
        turns = [
            AIMessage("", tool_calls=[{"name": "shell", "args": {"command": "ls"}, "id": str(number)}])
            for number in range(calls)
        ]
        agent = create_agent(Scripted(messages=iter([*turns, AIMessage("done")])), tools, middleware=given)
        await agent.ainvoke({"messages": "go"}, {"recursion_limit": 10_000})

    return run


def agent_framework(kind: str) -> Run:
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatMiddleware,
        ChatMiddlewareLayer,
        ChatResponse,
        Content,
        FunctionInvocationLayer,
        FunctionMiddleware,
        Message,
    )

    class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
        def __init__(self, calls: int) -> None:
            super().__init__(function_invocation_configuration={"max_iterations": 1000})
            self.left = iter(range(calls))

        async def _inner_get_response(self, **options: Any) -> Any:
            number = next(self.left, None)
            if number is None:
                content = Content.from_text("done")
            else:
                content = Content.from_function_call(call_id=f"c{number}", name="shell", arguments={"command": "ls"})
            return ChatResponse(messages=[Message(role="assistant", contents=[content])])

    class OwnCalls(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            await call_next()

    class OwnRequests(ChatMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            await call_next()

    def middleware() -> list[Any]:
        if kind == "ours":
            from hookline.adapters.agent_framework import HooklineMiddleware

            return [HooklineMiddleware(hooks_with_one())]
        return [OwnCalls(), OwnRequests()] if kind == "own" else []

    given = middleware()

    async def run(calls: int) -> None:
        await Agent(Scripted(calls), tools=[shell], middleware=given).run("go")

    return run


FRAMEWORKS = {
    "pydantic-ai": pydantic_ai,
    "strands": strands,
    "langchain": langchain,
    "agent-framework": agent_framework,
}


async def measure(make: Callable[[str], Run]) -> dict[str, float]:
    """Seconds per tool call: `own` hooks beside none, and `ours` beside the own."""
    runs = {kind: make(kind) for kind in ("bare", "own", "ours")}
    for run in runs.values():  # warm up
        await run(MANY)
    rounds = [{kind: await _slope(run) for kind, run in runs.items()} for _ in range(ROUNDS)]
    return {
        "own": median(one["own"] - one["bare"] for one in rounds),
        "ours": median(one["ours"] - one["own"] for one in rounds),
    }


async def _slope(run: Run) -> float:
    """What one more call costs: the slope between a run with few and one with many."""
    seconds = []
    for size in (FEW, MANY):
        started = time.process_time()
        await run(size)
        seconds.append(time.process_time() - started)
    return (seconds[1] - seconds[0]) / (MANY - FEW)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(FRAMEWORKS[sys.argv[1]]))))
