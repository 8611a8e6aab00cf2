"""LangChain: interrupts, cancellation, two sets of hooks."""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from hookline.frameworks.langchain import HooklineMiddleware
from tests.frameworks.drive.langchain_sync import Model, says
from tests.frameworks.drive.odd import LS, RM, Seen, Watched, deny_rm, misfit, played, stop_at_rm

PROMPT = {"messages": [HumanMessage("go")]}


def agent(seen: Seen, turns: Any, *hooks: Watched, more: Any = (), **options: Any) -> Any:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    middleware = [HooklineMiddleware(one, name=f"hooks {number}") for number, one in enumerate(hooks)]
    return create_agent(Model(messages=says(turns, "m"), seen=seen), [shell, *more], middleware=middleware, **options)


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

        task = asyncio.create_task(agent(seen, [("wait", {})], hooks, more=[wait]).ainvoke(PROMPT))
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        return "cancelled" if task.cancelled() else "went on"

    return played(seen, lambda: asyncio.run(cancel()), hooks)


CASES = {case.__name__: case for case in (two_sets, misfitting_rewrite, stop_after_an_interrupt, cancelled)}
