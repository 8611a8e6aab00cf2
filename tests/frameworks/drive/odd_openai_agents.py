"""The OpenAI Agents SDK: agents that change after they were guarded."""

import asyncio
import sys
from contextlib import suppress
from functools import partial
from typing import Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    ModelRetrySettings,
    ModelSettings,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.mcp import MCPServerStdio

from hookline.events import PreToolUse
from hookline.frameworks.openai_agents import guarded
from tests.frameworks.drive.odd import (
    FAILS,
    LS,
    RM,
    Seen,
    Watched,
    cancelled,
    deny_all,
    deny_rm,
    guarded_prompts,
    mcp_server,
    misfit,
    played,
)
from tests.frameworks.drive.openai_agents_run import Scripted


def shell_of(seen: Seen) -> Any:
    @function_tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    return shell


def agent(seen: Seen, *turns: Any, name: str = "main", tools: Any = None) -> Any:
    tools = [shell_of(seen)] if tools is None else tools
    return Agent(name=name, model=Scripted(seen, turns, name), tools=tools)


def answer(made: Any, prompt: str = "go") -> Any:
    return asyncio.run(Runner.run(made, prompt)).final_output


def two_sets() -> Any:
    seen, first, second = Seen(), Watched(), Watched(deny_rm)
    return played(seen, lambda: answer(guarded(guarded(agent(seen, [LS, RM]), first), second)), first, second)


def misfitting_rewrite() -> Any:
    seen, hooks = Seen(), Watched(misfit)
    return played(seen, lambda: answer(guarded(agent(seen, LS), hooks)), hooks)


def tool_added_later() -> Any:
    seen, hooks = Seen(), Watched(deny_all)
    made = guarded(agent(seen, LS, tools=[]), hooks)
    made.tools.append(shell_of(seen))
    return played(seen, lambda: answer(made), hooks)


def handoff_added_later() -> Any:
    seen, hooks = Seen(), Watched(deny_all)
    made = guarded(agent(seen, ("transfer_to_other", {})), hooks)
    made.handoffs.append(agent(seen, LS, name="other"))
    return played(seen, lambda: answer(made), hooks)


def cloned() -> Any:
    seen, hooks = Seen(), Watched(deny_all)
    made = guarded(agent(seen, LS), hooks).clone(name="clone", tools=[shell_of(seen)])
    return played(seen, lambda: answer(made), hooks)


def cloned_with_other_guardrails() -> Any:
    seen, hooks = Seen(), guarded_prompts()

    async def content(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    guardrails = [InputGuardrail(guardrail_function=content)]
    made = guarded(agent(seen, LS), hooks).clone(input_guardrails=guardrails, hooks=None)
    return played(seen, lambda: answer(made, "a secret"), hooks)


def unguarded_agent_as_a_tool() -> Any:
    seen, hooks = Seen(), Watched()
    tool = agent(seen, LS, name="inner").as_tool("delegate", "Let another agent do it")
    return played(seen, lambda: answer(guarded(agent(seen, ("delegate", {}), tools=[tool]), hooks)), hooks)


def tool_raises() -> Any:
    seen, hooks = Seen(), Watched()

    @function_tool(failure_error_function=None)
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    return played(
        seen, lambda: answer(guarded(agent(seen, ("shell", {"command": "fail"}), tools=[shell]), hooks)), hooks
    )


def cancelled_while_the_model_thinks() -> Any:
    seen, hooks = Seen(), Watched()

    class Slow(Scripted):
        async def get_response(self, *args: Any, **options: Any) -> Any:
            asking.set()
            await asyncio.Event().wait()

    async def work() -> None:
        run = asyncio.create_task(Runner.run(guarded(Agent(name="main", model=Slow(seen, (), "m")), hooks), "go"))
        await asking.wait()
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run

    asking = asyncio.Event()
    return played(seen, lambda: asyncio.run(work()), hooks)


def mcp_tools() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)

    async def work(program: str, arguments: list[str]) -> Any:
        params: Any = {"command": program, "args": arguments}
        async with MCPServerStdio(params, name="files", client_session_timeout_seconds=60) as server:
            made = Agent(name="main", model=Scripted(seen, [[LS, RM]], "m"), mcp_servers=[server])
            return (await Runner.run(guarded(made, hooks), "go")).final_output

    with mcp_server(seen) as server:
        return played(seen, lambda: asyncio.run(work(*server)), hooks)


def failure_made_a_text() -> Any:
    seen, hooks = Seen(), Watched()
    return played(seen, lambda: answer(guarded(agent(seen, ("shell", {"command": "fail"})), hooks)), hooks)


def calls_compile_nothing() -> Any:
    """Python says when something is compiled: as often with one call as with five, once all is imported."""
    compiled: list[str] = []
    sys.addaudithook(lambda name, details: compiled.append(name) if name == "compile" else None)
    counts = []
    for calls in (5, 5, 1):
        compiled.clear()
        answer(guarded(agent(Seen(), *[LS] * calls), Watched()))
        counts.append(len(compiled))
    return {"counts": counts[1:]}


def max_turns(streamed: bool = False) -> Any:
    seen, hooks = Seen(), Watched()
    made = guarded(agent(seen, *[LS] * 5), hooks)
    return played(seen, lambda: asyncio.run(run(made, streamed=streamed, max_turns=2)), hooks)


async def run(made: Any, prompt: str = "go", *, streamed: bool = False, **options: Any) -> Any:
    if not streamed:
        return (await Runner.run(made, prompt, **options)).final_output
    result = Runner.run_streamed(made, prompt, **options)
    async for _ in result.stream_events():
        pass
    return result.final_output


def cancelled_in_a_tool(streamed: bool = False) -> Any:
    seen, hooks = Seen(), Watched()

    async def work() -> str:
        reached = asyncio.Event()

        @function_tool
        async def wait() -> None:
            """Wait."""
            reached.set()
            await asyncio.Event().wait()

        made = guarded(agent(seen, ("wait", {}), tools=[wait]), hooks)
        task = asyncio.create_task(run(made, streamed=streamed))
        await reached.wait()
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        return "cancelled" if task.cancelled() else "went on"

    return played(seen, lambda: asyncio.run(work()), hooks)


def cancelled_in_a_hook() -> Any:
    seen, hooks = Seen(), Watched()

    async def work() -> str:
        reached = asyncio.Event()

        @hooks.on(PreToolUse, priority=-1)
        async def wait(event: PreToolUse) -> None:
            reached.set()
            await asyncio.Event().wait()

        return await cancelled(run(guarded(agent(seen, LS), hooks)), reached)

    return played(seen, lambda: asyncio.run(work()), hooks)


def model_retried(streamed: bool = False) -> Any:
    seen, hooks = Seen(), Watched()
    retry = ModelRetrySettings(
        max_retries=2, backoff={"initial_delay": 0, "jitter": False}, policy=lambda context: True
    )
    turns = [ValueError("model down"), LS]
    model = Scripted(seen, turns, "m")
    made = Agent(name="main", model=model, tools=[shell_of(seen)], model_settings=ModelSettings(retry=retry))
    return played(seen, lambda: asyncio.run(run(guarded(made, hooks), streamed=streamed)), hooks)


def stop_on_first_tool(streamed: bool = False) -> Any:
    seen, hooks = Seen(), Watched()
    made = agent(seen, LS)
    made.tool_use_behavior = "stop_on_first_tool"
    return played(seen, lambda: asyncio.run(run(guarded(made, hooks), streamed=streamed)), hooks)


def refused_prompt_in_a_session(streamed: bool = False) -> Any:
    """A refused prompt, then a harmless one, in one conversation."""
    seen, hooks = Seen(), guarded_prompts()

    async def work() -> Any:
        made, session = guarded(agent(seen, "first", "second"), hooks), SQLiteSession("s")
        await run(made, "hello", streamed=streamed, session=session)
        with suppress(InputGuardrailTripwireTriggered):
            await run(made, "a secret", streamed=streamed, session=session)
        answer = await run(made, "go on", streamed=streamed, session=session)
        return [answer, [str(item.get("content")) for item in await session.get_items() if item.get("role") == "user"]]

    return played(seen, lambda: asyncio.run(work()), hooks)


def mcp_error() -> Any:
    seen, hooks = Seen(), Watched()

    async def work(program: str, arguments: list[str]) -> Any:
        params: Any = {"command": program, "args": arguments}
        async with MCPServerStdio(params, name="files", client_session_timeout_seconds=60) as server:
            made = Agent(name="main", model=Scripted(seen, [FAILS, LS], "m"), mcp_servers=[server])
            return (await Runner.run(guarded(made, hooks), "go")).final_output

    with mcp_server(seen) as server:
        return played(seen, lambda: asyncio.run(work(*server)), hooks)


BOTH = (max_turns, cancelled_in_a_tool, model_retried, stop_on_first_tool, refused_prompt_in_a_session)
"""Played with and without streaming."""

CASES = {
    **{case.__name__: case for case in BOTH},
    **{f"{case.__name__}_streamed": partial(case, True) for case in BOTH},
} | {
    case.__name__: case
    for case in (
        two_sets, misfitting_rewrite, tool_added_later, handoff_added_later, cloned, unguarded_agent_as_a_tool,
        failure_made_a_text, cloned_with_other_guardrails, tool_raises, cancelled_while_the_model_thinks, mcp_tools,
        calls_compile_nothing, cancelled_in_a_hook, mcp_error,
    )
}  # fmt: skip
