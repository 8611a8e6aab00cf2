"""What a tool call costs in one framework: bare, with hooks of the framework's own, and with Hookline's adapter.

The framework's own hooks stand at the points that the adapter uses, once as hooks that do nothing and once so that
those around a tool call do what the adapter is there for: ask Hookline before and after it, by hand. In a run the
scripted model makes many tool calls at once and then ends; what is timed is what lies between its two answers.

Runs in the framework's own environment (`make frameworks`): `python bench/adapter_probe.py pydantic-ai` prints JSON:
seconds of processor time per tool call in each round, of all kinds in turns.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from hookline import Hooks
from hookline.events import PostToolUse, PreToolUse

CALLS = 100 if sys.argv[-1] == "crewai" else 25  # in CrewAI, all that is around the calls costs as much as many of them
SECONDS = 45 if sys.argv[-1] == "google-adk" else 18  # where most of a run is not timed, there are fewer of them
Run = Callable[[], Awaitable[Any]]


class Turns:
    """What a model says, and the processor time from its first answer until it is asked for the second.

    In processor time waiting for others does not count; the garbage collector rests meanwhile.
    """

    def __init__(self) -> None:
        self.took = 0.0
        self._started: float | None = None

    def next(self, first: Any, second: Any) -> Any:
        if self._started is None:
            gc.collect()
            gc.disable()
            self._started = time.process_time()
            return first
        self.took, self._started = time.process_time() - self._started, None
        gc.enable()
        return second


turns = Turns()


def hooks_with_one() -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse)
    async def nothing(event: PreToolUse) -> None:
        return None

    return hooks


def event_of(name: str, arguments: dict[str, Any]) -> PreToolUse:
    """What a hook of the framework's own has to make of a call in order to ask hooks of ours."""
    return PreToolUse(session_id="s", cwd="/p", prompt_id="p", tool_name=name, tool_input=arguments, tool_use_id="t")


def result_of(name: str, arguments: dict[str, Any], result: Any) -> PostToolUse:
    """The same after the call."""
    return PostToolUse(
        session_id="s", cwd="/p", prompt_id="p", tool_name=name, tool_input=arguments, tool_use_id="t",
        tool_response=result,
    )  # fmt: skip


def pydantic_ai(kind: str) -> Run:  # noqa: C901 - a model, the own hooks and an agent, each of a few lines
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

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

    class Asks(Own):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            await hooks.fire(event_of(call.tool_name, args))
            return args

        async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
            await hooks.fire(result_of(call.tool_name, args, result))
            return result

    def capabilities() -> list[Any]:
        if kind == "ours":
            from hookline.frameworks.pydantic_ai import HooklineCapability

            return [HooklineCapability(hooks)]
        return {"idle": [Own()], "own": [Asks()]}.get(kind, [])

    def model(messages: Any, info: Any) -> Any:
        calls = [ToolCallPart("shell", {"command": "ls"}) for _ in range(CALLS)]
        return ModelResponse(parts=turns.next(calls, [TextPart("done")]))

    hooks = hooks_with_one()
    agent = Agent(FunctionModel(model), capabilities=capabilities())
    agent.tool_plain(shell)
    return lambda: agent.run("go")


async def shell(command: str) -> str:
    """Run a command."""  # not in a thread, where most frameworks run plain functions: that costs more than any hook
    return command


def strands(kind: str) -> Run:  # noqa: C901 - a model, a provider and a run, each of a few lines
    from strands import Agent, tool
    from strands.hooks import AfterToolCallEvent, AfterToolsEvent, BeforeToolCallEvent, HookProvider
    from strands.models import Model

    class Scripted(Model):
        def update_config(self, **config: Any) -> None: ...

        def get_config(self) -> Any:
            return {}

        async def structured_output(self, *args: Any, **options: Any) -> Any:
            yield {}

        async def stream(self, *args: Any, **options: Any) -> Any:
            uses = [
                {"toolUse": {"toolUseId": f"t{number}", "name": "shell"}} for number in turns.next(range(CALLS), ())
            ]
            delta = {"toolUse": {"input": '{"command": "ls"}'}} if uses else {"text": "done"}
            yield {"messageStart": {"role": "assistant"}}
            for start in uses or [{}]:
                yield {"contentBlockStart": {"start": start}}
                yield {"contentBlockDelta": {"delta": delta}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use" if uses else "end_turn"}}

    class Own(HookProvider):
        def register_hooks(self, registry: Any, **options: Any) -> None:
            registry.add_callback(BeforeToolCallEvent, self.before)
            registry.add_callback(AfterToolCallEvent, self.after)
            registry.add_callback(AfterToolsEvent, self.nothing)

        async def before(self, event: Any) -> None: ...

        async def after(self, event: Any) -> None: ...

        async def nothing(self, event: Any) -> None: ...

    class Asks(Own):
        async def before(self, event: Any) -> None:
            await hooks.fire(event_of(event.tool_use["name"], event.tool_use["input"]))

        async def after(self, event: Any) -> None:
            use = event.tool_use
            await hooks.fire(result_of(use["name"], use["input"], event.result["content"]))

    def providers() -> list[Any]:
        if kind == "ours":
            from hookline.frameworks.strands import HooklineProvider

            return [HooklineProvider(hooks)]
        return {"idle": [Own()], "own": [Asks()]}.get(kind, [])

    hooks = hooks_with_one()
    given, tools = providers(), [tool(shell)]

    async def run() -> None:
        agent = Agent(model=Scripted(), tools=tools, hooks=given, callback_handler=None)
        await agent.invoke_async("go")

    return run


def langchain(kind: str) -> Run:  # noqa: C901 - a model, the own hooks and an agent, each of a few lines
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    def answers() -> Iterator[AIMessage]:
        made = [{"name": "shell", "args": {"command": "ls"}, "id": str(number)} for number in range(CALLS)]
        while True:
            yield turns.next(AIMessage("", tool_calls=made), AIMessage("done"))

    class Own(AgentMiddleware):
        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def abefore_model(self, state: Any, runtime: Any) -> None: ...

        async def aafter_model(self, state: Any, runtime: Any) -> None: ...

    class Asks(Own):
        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            call = request.tool_call
            await hooks.fire(event_of(call["name"], call["args"]))
            result = await handler(request)
            await hooks.fire(result_of(call["name"], call["args"], result.content))
            return result

    def middleware() -> list[Any]:
        if kind == "ours":
            from hookline.frameworks.langchain import HooklineMiddleware

            return [HooklineMiddleware(hooks)]
        return {"idle": [Own()], "own": [Asks()]}.get(kind, [])

    hooks = hooks_with_one()
    agent = create_agent(Scripted(messages=answers()), [tool(shell)], middleware=middleware())
    return lambda: agent.ainvoke({"messages": "go"})


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
        async def _inner_get_response(self, **options: Any) -> Any:
            calls = [
                Content.from_function_call(call_id=f"c{number}", name="shell", arguments={"command": "ls"})
                for number in range(CALLS)
            ]
            contents = turns.next(calls, [Content.from_text("done")])
            return ChatResponse(messages=[Message(role="assistant", contents=contents)])

    class OwnCalls(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            await call_next()

    class Asks(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            name, arguments = context.function.name, dict(context.arguments)
            await hooks.fire(event_of(name, arguments))
            await call_next()
            await hooks.fire(result_of(name, arguments, str(context.result)))

    class OwnRequests(ChatMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            await call_next()

    def middleware() -> list[Any]:
        if kind == "ours":
            from hookline.frameworks.agent_framework import HooklineMiddleware

            return [HooklineMiddleware(hooks)]
        return {"idle": [OwnCalls(), OwnRequests()], "own": [Asks(), OwnRequests()]}.get(kind, [])

    hooks = hooks_with_one()
    agent = Agent(Scripted(), tools=[shell], middleware=middleware())
    return lambda: agent.run("go")


def google_adk(kind: str) -> Run:  # noqa: C901 - a model, the own hooks and a run, each of a few lines
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Scripted(BaseLlm):
        model: str = "scripted"

        async def generate_content_async(self, llm_request: Any, stream: Any = None) -> Any:
            call = types.FunctionCall(name="shell", args={"command": "ls"})
            calls = [types.Part(function_call=call.model_copy()) for _ in range(CALLS)]
            yield LlmResponse(content=types.Content(role="model", parts=turns.next(calls, [types.Part(text="done")])))

    class Own(BasePlugin):
        async def before_tool_callback(self, **given: Any) -> None: ...

        async def after_tool_callback(self, **given: Any) -> None: ...

        async def before_model_callback(self, **given: Any) -> None: ...

        async def after_model_callback(self, **given: Any) -> None: ...

        async def before_agent_callback(self, **given: Any) -> None: ...

    class Asks(Own):
        async def before_tool_callback(self, **given: Any) -> None:
            await hooks.fire(event_of(given["tool"].name, given["tool_args"]))

        async def after_tool_callback(self, **given: Any) -> None:
            await hooks.fire(result_of(given["tool"].name, given["tool_args"], given["result"]))

    def plugins() -> list[Any]:
        if kind == "ours":
            from hookline.frameworks.google_adk import HooklinePlugin

            return [HooklinePlugin(hooks)]
        return {"idle": [Own(name="own")], "own": [Asks(name="own")]}.get(kind, [])

    hooks = hooks_with_one()
    given = plugins()

    async def run() -> None:
        agent = LlmAgent(name="main", model=Scripted(), tools=[shell])
        runner = InMemoryRunner(agent=agent, app_name="app", plugins=given)
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass

    return run


def openai_agents(kind: str) -> Run:
    from agents import (
        Agent,
        Model,
        ModelResponse,
        Runner,
        ToolGuardrailFunctionOutput,
        ToolInputGuardrail,
        ToolOutputGuardrail,
        Usage,
        function_tool,
        set_tracing_disabled,
    )
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
            calls = [
                ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{number}", id=f"c{number}", name="shell",
                    arguments='{"command": "ls"}',
                )
                for number in range(CALLS)
            ]  # fmt: skip
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            last = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=turns.next(calls, [last]), usage=Usage(), response_id=None)

        async def stream_response(self, *args: Any, **options: Any) -> Any:
            yield None

    async def nothing(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.allow()

    async def asks(data: Any) -> ToolGuardrailFunctionOutput:
        await hooks.fire(event_of(data.context.tool_name, json.loads(data.context.tool_arguments)))
        return ToolGuardrailFunctionOutput.allow()

    async def asks_after(data: Any) -> ToolGuardrailFunctionOutput:
        arguments = json.loads(data.context.tool_arguments)
        await hooks.fire(result_of(data.context.tool_name, arguments, data.output))
        return ToolGuardrailFunctionOutput.allow()

    hooks = hooks_with_one()
    tool = function_tool(shell)
    if kind in {"idle", "own"}:
        before, after = (asks, asks_after) if kind == "own" else (nothing, nothing)
        tool.tool_input_guardrails = [ToolInputGuardrail(guardrail_function=before)]
        tool.tool_output_guardrails = [ToolOutputGuardrail(guardrail_function=after)]
    agent = Agent(name="main", model=Scripted(), tools=[tool])
    if kind == "ours":
        from hookline.frameworks.openai_agents import guarded

        agent = guarded(agent, hooks)
    return lambda: Runner.run(agent, "go")


def crewai(kind: str) -> Run:  # noqa: C901 - a model, the own hooks and a run, each of a few lines
    os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.hooks import InterceptionPoint
    from crewai.hooks.dispatch import register, unregister
    from crewai.tools import tool

    from hookline.frameworks.crewai import guarding

    class Scripted(BaseLLM):
        def call(self, messages: Any, *args: Any, **options: Any) -> Any:
            return turns.next([asked(number) for number in range(CALLS)], "done")

        def supports_function_calling(self) -> bool:
            return True

        def supports_stop_words(self) -> bool:
            return True

        def get_context_window_size(self) -> int:
            return 8000

    points = [
        InterceptionPoint.PRE_MODEL_CALL, InterceptionPoint.POST_MODEL_CALL, InterceptionPoint.PRE_TOOL_CALL,
        InterceptionPoint.POST_TOOL_CALL,
    ]  # fmt: skip

    def nothing(context: Any) -> None: ...

    def asks(context: Any) -> None:
        hooks.fire_sync(event_of(context.tool_name, context.tool_input))

    def asks_after(context: Any) -> None:
        hooks.fire_sync(result_of(context.tool_name, context.tool_input, context.tool_result))

    @contextmanager
    def own() -> Iterator[None]:
        asking = {InterceptionPoint.PRE_TOOL_CALL: asks, InterceptionPoint.POST_TOOL_CALL: asks_after}
        given = dict.fromkeys(points, nothing) | (asking if kind == "own" else {})
        for point, hook in given.items():
            register(point, hook)
        yield
        for point, hook in given.items():
            unregister(point, hook)

    hooks = hooks_with_one()
    ways: dict[str, Callable[[], Any]] = {"bare": nullcontext, "ours": lambda: guarding(hooks)}
    around = ways.get(kind, own)

    def run_shell(command: str) -> str:
        """Run a command."""
        return command

    tools = [tool("shell")(run_shell)]
    tools[0].max_usage_count = 1_000_000_000  # with a bound, however high, calls are not handed to threads

    def asked(number: int) -> Any:
        command = json.dumps({"command": f"ls {number}"})  # it minds repetition
        return {"id": f"c{number}", "type": "function", "function": {"name": "shell", "arguments": command}}

    async def run() -> None:
        agent = Agent(role="main", goal="g", backstory="b", llm=Scripted(model="s"), tools=tools, cache=False)
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


KINDS = ("bare", "idle", "own", "ours")


async def measure(make: Callable[[str], Run]) -> dict[str, list[float]]:
    """Seconds per tool call: without hooks, with the framework's own, and with the adapter's, in turns.

    Those of a round follow one another, so that they meet the same noise and can be compared within it.
    """
    runs = {kind: make(kind) for kind in KINDS}
    for run in runs.values():  # warm up
        await run()
    gc.collect()
    gc.freeze()  # what is there stays: collecting before a run is cheap from now on
    times: dict[str, list[float]] = {kind: [] for kind in runs}
    until, order = time.monotonic() + SECONDS, list(runs)
    while time.monotonic() < until:
        order = [*order[1:], order[0]]
        for kind in order:
            await runs[kind]()
            times[kind].append(turns.took / CALLS)
    return times


if __name__ == "__main__":
    made = asyncio.run(measure(FRAMEWORKS[sys.argv[1]]))
    print("\n" + json.dumps(made))  # some frameworks print, too: the last line counts
