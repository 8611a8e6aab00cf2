"""What a tool call costs in one framework: bare, with hooks of the framework's own, and with Hookline's adapter.

The framework's own hooks do nothing, at the same points that the adapter uses; the adapter asks one hook.

Runs in the framework's own environment (`make frameworks`): `python bench/adapter_probe.py pydantic-ai` prints JSON:
seconds of processor time per tool call in each round, of the three in turns.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
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


def google_adk(kind: str) -> Run:  # noqa: C901 - a model, the own hooks and a run, each of a few lines
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Scripted(BaseLlm):
        model: str = "scripted"
        left: Any = None

        async def generate_content_async(self, llm_request: Any, stream: Any = None) -> Any:
            call = types.FunctionCall(name="shell", args={"command": "ls"})
            done = next(self.left, None) is None
            part = types.Part(text="done") if done else types.Part(function_call=call)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    class Own(BasePlugin):
        async def before_tool_callback(self, **given: Any) -> None: ...

        async def after_tool_callback(self, **given: Any) -> None: ...

        async def before_model_callback(self, **given: Any) -> None: ...

        async def after_model_callback(self, **given: Any) -> None: ...

        async def before_agent_callback(self, **given: Any) -> None: ...

    def plugins() -> list[Any]:
        if kind == "ours":
            from hookline.adapters.google_adk import HooklinePlugin

            return [HooklinePlugin(hooks_with_one())]
        return [Own(name="own")] if kind == "own" else []

    given = plugins()

    async def run(calls: int) -> None:
        agent = LlmAgent(name="main", model=Scripted(left=iter(range(calls))), tools=[shell])
        runner = InMemoryRunner(agent=agent, app_name="app", plugins=given)
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass

    return run


def openai_agents(kind: str) -> Run:  # noqa: C901 - a model, the own hooks and a run, each of a few lines
    from agents import Agent, AgentHooks, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        def __init__(self, calls: int) -> None:
            self.left = iter(range(calls))

        async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
            number = next(self.left, None)
            output: Any
            if number is None:
                text = ResponseOutputText(type="output_text", text="done", annotations=[])
                output = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            else:
                output = ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{number}", id=f"c{number}", name="shell",
                    arguments='{"command": "ls"}',
                )  # fmt: skip
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        async def stream_response(self, *args: Any, **options: Any) -> Any:
            yield None

    class Own(AgentHooks[Any]):
        async def on_tool_start(self, *args: Any) -> None: ...

        async def on_tool_end(self, *args: Any) -> None: ...

        async def on_llm_start(self, *args: Any) -> None: ...

        async def on_llm_end(self, *args: Any) -> None: ...

    tools: list[Any] = [function_tool(shell)]

    def agent(calls: int) -> Any:
        made = Agent(name="main", model=Scripted(calls), tools=tools, hooks=Own() if kind == "own" else None)
        if kind != "ours":
            return made
        from hookline.adapters.openai_agents import guarded

        return guarded(made, hooks)

    hooks = hooks_with_one()

    async def run(calls: int) -> None:
        await Runner.run(agent(calls), "go", max_turns=calls + 2)

    return run


def crewai(kind: str) -> Run:  # noqa: C901 - a model, the own hooks and a run, each of a few lines
    os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.hooks import InterceptionPoint
    from crewai.hooks.dispatch import register, unregister
    from crewai.tools import tool

    from hookline.adapters.crewai import guarding

    class Scripted(BaseLLM):
        left: Any = None

        def call(self, messages: Any, *args: Any, **options: Any) -> str:
            number = next(self.left, None)
            if number is None:
                return "Thought: I now know\nFinal Answer: done"
            return f'Thought: so\nAction: shell\nAction Input: {{"command": "ls {number}"}}'  # it minds repetition

        def supports_function_calling(self) -> bool:
            return False

        def supports_stop_words(self) -> bool:
            return True

        def get_context_window_size(self) -> int:
            return 8000

    points = [
        InterceptionPoint.PRE_MODEL_CALL, InterceptionPoint.POST_MODEL_CALL, InterceptionPoint.PRE_TOOL_CALL,
        InterceptionPoint.POST_TOOL_CALL,
    ]  # fmt: skip

    def nothing(context: Any) -> None: ...

    @contextmanager
    def own() -> Iterator[None]:
        for point in points:
            register(point, nothing)
        yield
        for point in points:
            unregister(point, nothing)

    hooks = hooks_with_one()
    ways: dict[str, Callable[[], Any]] = {"bare": nullcontext, "own": own, "ours": lambda: guarding(hooks)}
    around = ways[kind]
    tools = [tool("shell")(shell)]

    async def run(calls: int) -> None:
        agent = Agent(
            role="main", goal="g", backstory="b", llm=Scripted(model="scripted", left=iter(range(calls))), tools=tools,
            max_iter=1000, cache=False,
        )  # fmt: skip
        crew = Crew(agents=[agent], tasks=[Task(description="go", expected_output="e", agent=agent)], cache=False)
        with around():
            await asyncio.to_thread(crew.kickoff)

    return run


FRAMEWORKS = {
    "crewai": crewai,
    "google-adk": google_adk,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "strands": strands,
    "langchain": langchain,
    "agent-framework": agent_framework,
}


async def measure(make: Callable[[str], Run]) -> dict[str, list[float]]:
    """Seconds per tool call, round by round: without hooks, with the framework's own, and with the adapter's."""
    runs = {kind: make(kind) for kind in ("bare", "own", "ours")}
    for run in runs.values():  # warm up
        await run(MANY)
    rounds = [{kind: await _slope(run) for kind, run in runs.items()} for _ in range(ROUNDS)]
    return {kind: [one[kind] for one in rounds] for kind in runs}


async def _slope(run: Run) -> float:
    """What one more call costs: the slope between a run with few and one with many."""
    seconds = []
    for size in (FEW, MANY):
        started = time.process_time()
        await run(size)
        seconds.append(time.process_time() - started)
    return (seconds[1] - seconds[0]) / (MANY - FEW)


if __name__ == "__main__":
    made = asyncio.run(measure(FRAMEWORKS[sys.argv[1]]))
    print("\n" + json.dumps(made))  # some frameworks print, too: the last line counts
