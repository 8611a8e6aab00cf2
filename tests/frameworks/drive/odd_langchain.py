"""LangChain: interrupts, runs that end early, retries, two sets of hooks, agents without the middleware."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from hookline.events import PreToolUse
from hookline.frameworks.langchain import HooklineMiddleware
from tests.frameworks.drive.langchain_sync import Model, says
from tests.frameworks.drive.odd import LS, RM, Seen, Watched, deny_rm, misfit, played, stop_at_rm

PROMPT = {"messages": [HumanMessage("go")]}


def agent(
    seen: Seen, turns: Any, *hooks: Watched, more: Any = (), before: Any = (), model: Any = Model, **options: Any
) -> Any:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    middleware = [*before, *(HooklineMiddleware(one, name=f"hooks {number}") for number, one in enumerate(hooks))]
    return create_agent(model(messages=says(turns, "m"), seen=seen), [shell, *more], middleware=middleware, **options)


def two_sets() -> Any:
    seen, first, second = Seen(), Watched(), Watched(deny_rm)
    made = agent(seen, [[LS, RM]], first, second)
    return played(seen, lambda: made.invoke(PROMPT)["messages"][-1].content, first, second)


def misfitting_rewrite() -> Any:
    seen, hooks = Seen(), Watched(misfit)
    return played(seen, lambda: agent(seen, [LS], hooks).invoke(PROMPT)["messages"][-1].content, hooks)


def stop_after_an_interrupt() -> Any:
    seen, hooks = Seen(), Watched(stop_at_rm)

    @tool
    def ask(command: str) -> str:
        """Ask somebody."""
        return str(interrupt(command))

    turns, thread = [("ask", {"command": "ok?"}), RM], {"configurable": {"thread_id": "t"}}
    made = agent(seen, turns, hooks, more=[ask], checkpointer=InMemorySaver())
    made.invoke(PROMPT, thread)
    return played(seen, lambda: made.invoke(Command(resume="yes"), thread)["messages"][-1].content, hooks)


def cancelled() -> Any:
    seen, hooks = Seen(), Watched()

    async def cancel() -> str:
        started = asyncio.Event()

        @tool
        async def wait() -> None:
            """Wait."""
            started.set()
            await asyncio.Event().wait()

        return await run_until(agent(seen, [("wait", {})], hooks, more=[wait]), started)

    return played(seen, lambda: asyncio.run(cancel()), hooks)


async def run_until(made: Any, reached: asyncio.Event) -> str:
    """Cancel a run once it has come this far."""
    task = asyncio.create_task(made.ainvoke(PROMPT))
    await reached.wait()
    task.cancel()
    await asyncio.wait([task])
    return "cancelled" if task.cancelled() else "went on"


def cancelled_in_a_hook() -> Any:
    seen, hooks = Seen(), Watched()

    async def cancel() -> str:
        reached = asyncio.Event()

        @hooks.on(PreToolUse, priority=-1)
        async def wait(event: PreToolUse) -> None:
            reached.set()
            await asyncio.Event().wait()

        return await run_until(agent(seen, [LS], hooks), reached)

    return played(seen, lambda: asyncio.run(cancel()), hooks)


def recursion_limit(work: Callable[[Any, Any], Any]) -> Any:
    seen, hooks = Seen(), Watched()
    return played(seen, lambda: work(agent(seen, [LS] * 9, hooks), {"recursion_limit": 7}), hooks)


def flaky(seen: Seen) -> Any:
    @tool
    def flaky(command: str) -> str:
        """Fail once."""
        if not seen.calls:
            seen.shell("fail")
        return seen.shell(command)

    return flaky


def tool_retried() -> Any:
    seen, hooks = Seen(), Watched()
    more = [ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)]
    made = agent(seen, [("flaky", {"command": "ls"})], hooks, more=[flaky(seen)], before=more)
    return played(seen, lambda: made.invoke(PROMPT)["messages"][-1].content, hooks)


def model_retried() -> Any:
    seen, hooks = Seen(), Watched()

    class Flaky(Model):
        def _generate(self, *args: Any, **options: Any) -> Any:
            if not seen.requests:
                seen.requests.append("")
                raise ValueError("model down")
            return super()._generate(*args, **options)

    more = [ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)]
    made = agent(seen, [LS], hooks, before=more, model=Flaky)
    return played(seen, lambda: made.invoke(PROMPT)["messages"][-1].content, hooks)


def stream_left() -> Any:
    seen, hooks = Seen(), Watched()

    def leave() -> str:
        stream = agent(seen, [LS], hooks).stream(PROMPT)
        next(stream)
        stream.close()
        return "left"

    return played(seen, leave, hooks)


TASK = ("task", {"description": "do it", "subagent_type": "general-purpose"})


def deep_agent(work: Callable[[Any], Any], *, guarded: bool = False, two: bool = False) -> Any:
    """deepagents builds its `general-purpose` subagent without the middleware that it was given."""
    from deepagents import create_deep_agent

    seen, hooks, others = Seen(), Watched(deny_rm), Watched()

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    middleware: list[Any] = [HooklineMiddleware(hooks), *([HooklineMiddleware(others, name="others")] if two else [])]
    mine = {
        "name": "general-purpose",
        "description": "d",
        "system_prompt": "p",
        "middleware": [HooklineMiddleware(hooks)],
    }
    model = Model(messages=says([TASK, RM, LS, "inner done", "done"], "d"), seen=seen)
    made = create_deep_agent(
        model=model, tools=[shell], middleware=middleware, subagents=[mine] if guarded else [],
    )  # fmt: skip
    return played(seen, lambda: work(made)["messages"][-1].content, hooks, others)


def invoked(made: Any, *config: Any) -> Any:
    return made.invoke(PROMPT, *config)


def awaited(made: Any, *config: Any) -> Any:
    return asyncio.run(made.ainvoke(PROMPT, *config))


CASES = {
    case.__name__: case
    for case in (
        two_sets, misfitting_rewrite, stop_after_an_interrupt, cancelled, cancelled_in_a_hook, tool_retried,
        model_retried, stream_left,
    )
} | {
    "recursion_limit": partial(recursion_limit, invoked),
    "recursion_limit_async": partial(recursion_limit, awaited),
    "deep_agent": partial(deep_agent, invoked),
    "deep_agent_async": partial(deep_agent, awaited),
    "deep_agent_guarded": partial(deep_agent, invoked, guarded=True),
    "deep_agent_two_sets": partial(deep_agent, awaited, two=True),
}  # fmt: skip
