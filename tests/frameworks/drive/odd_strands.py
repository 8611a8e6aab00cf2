"""Strands: tool uses that are not what they should be."""

import asyncio
from functools import partial
from typing import Any

from mcp import StdioServerParameters, stdio_client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from strands import Agent, tool
from strands.tools.mcp import MCPClient

from hookline.events import PreToolUse
from hookline.frameworks.strands import HooklineProvider
from hookline.records import OpenTelemetry
from tests.frameworks.drive.odd import FAILS, LS, RM, Seen, Watched, cancelled, deny_rm, mcp_server, played, usual
from tests.frameworks.drive.strands_agent import Scripted


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


def mcp_tools() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)

    def work(program: str, arguments: list[str]) -> str:
        server = MCPClient(lambda: stdio_client(StdioServerParameters(command=program, args=arguments)))
        with server:
            agent = Agent(
                name="main", model=Scripted(seen, [[LS, RM]], "m"), tools=server.list_tools_sync(),
                hooks=[HooklineProvider(hooks)], callback_handler=None,
            )  # fmt: skip
            return str(agent("go")).strip()

    with mcp_server(seen) as server:
        return played(seen, lambda: work(*server), hooks)


class Answer(BaseModel):
    text: str


def structured_output(streamed: bool = False) -> Any:
    seen, hooks = Seen(), Watched()

    async def stream(agent: Any) -> str:
        async for event in agent.stream_async("go", structured_output_model=Answer):
            if "result" in event:
                return str(event["result"].structured_output.text)
        return ""

    def work() -> str:
        model = Scripted(seen, [("Answer", {"text": "x"})], "m")
        agent = Agent(name="main", model=model, hooks=[HooklineProvider(hooks)], callback_handler=None)
        if streamed:
            return asyncio.run(stream(agent))
        return str(agent("go", structured_output_model=Answer).structured_output.text)

    return played(seen, work, hooks)


def mcp_error() -> Any:
    seen, hooks = Seen(), Watched()

    def work(program: str, arguments: list[str]) -> str:
        server = MCPClient(lambda: stdio_client(StdioServerParameters(command=program, args=arguments)))
        with server:
            agent = Agent(
                name="main", model=Scripted(seen, [FAILS, LS], "m"), tools=server.list_tools_sync(),
                hooks=[HooklineProvider(hooks)], callback_handler=None,
            )  # fmt: skip
            return str(agent("go")).strip()

    with mcp_server(seen) as server:
        return played(seen, lambda: work(*server), hooks)


def cancelled_in(where: str) -> Any:
    """A run that is cancelled in a hook, or while its model thinks."""
    seen, hooks = Seen(), Watched()

    async def work() -> str:
        reached = asyncio.Event()

        class Slow(Scripted):
            async def stream(self, *args: Any, **options: Any) -> Any:
                reached.set()
                await asyncio.Event().wait()
                yield {}

        @hooks.on(PreToolUse, priority=-1)
        async def wait(event: PreToolUse) -> None:
            reached.set()
            await asyncio.Event().wait()

        @tool
        def shell(command: str) -> str:
            """Run a command."""
            return seen.shell(command)

        model = (Slow if where == "model" else Scripted)(seen, [LS], "m")
        agent = Agent(name="main", model=model, tools=[shell], hooks=[HooklineProvider(hooks)], callback_handler=None)
        return await cancelled(agent.invoke_async("go"), reached)

    return played(seen, lambda: asyncio.run(work()), hooks)


def traced() -> Any:
    """Three requests of an application that traces itself, one after another, with one agent."""
    seen, hooks, spans = Seen(), Watched(), InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    hooks.observe(OpenTelemetry(provider))
    tracer = provider.get_tracer("app")

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    made = Agent(
        name="main", model=Scripted(seen, [LS, "done"] * 3, "m"), tools=[shell], hooks=[HooklineProvider(hooks)],
        callback_handler=None,
    )  # fmt: skip

    def work() -> str:
        for number in range(3):
            with tracer.start_as_current_span(f"request {number}"):
                made("go")
        asyncio.run(hooks.aclose())
        return "done"

    facts = played(seen, work, hooks)
    found = spans.get_finished_spans()
    roots = {span.context.trace_id: span.name for span in found if span.name.startswith("request")}
    names = {name: sorted(s.name for s in found if roots.get(s.context.trace_id) == name) for name in roots.values()}
    orphans = [span.name for span in found if span.context.trace_id not in roots]
    return {**facts, "traces": names, "orphans": orphans}


CASES = (
    {
        "structured_output_streamed": partial(structured_output, True),
        "cancelled_in_a_hook": partial(cancelled_in, "hook"),
        "cancelled_while_the_model_thinks": partial(cancelled_in, "model"),
        **{case.__name__: case for case in (structured_output, mcp_error, traced)},
    }
    | usual(answer)
    | {case.__name__: case for case in (input_that_is_no_object, ids_repeated, mcp_tools)}
)
