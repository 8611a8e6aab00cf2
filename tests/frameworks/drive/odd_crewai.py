"""CrewAI with native tool calls; crews and agents that are used again after a failure."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai import Agent, Crew, Task
from crewai.tools import tool

from hookline.frameworks.crewai import guarding
from tests.frameworks.drive.crewai_native import Native
from tests.frameworks.drive.odd import LS, RM, Seen, Watched, deny_rm, guarded_prompts, misfit, played


def crew(seen: Seen, turns: Any, task: str = "go") -> Any:
    @tool("shell")
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    model = Native(model="scripted", seen=seen, turns=iter([*turns, "done", "done"]))
    agent = Agent(role="main", goal="g", backstory="b", llm=model, tools=[shell], max_retry_limit=0)
    return Crew(name="main", agents=[agent], tasks=[Task(description=task, expected_output="e", agent=agent)])


@contextmanager
def both(first: Watched, second: Watched) -> Iterator[None]:
    with guarding(first), guarding(second):
        yield


def two_sets() -> Any:
    seen, first, second = Seen(), Watched(), Watched(deny_rm)
    with both(first, second):
        return played(seen, lambda: str(crew(seen, [LS, RM]).kickoff()), first, second)


def misfitting_rewrite() -> Any:
    seen, hooks = Seen(), Watched(misfit)
    with guarding(hooks):
        return played(seen, lambda: str(crew(seen, [LS]).kickoff()), hooks)


def calls_at_once() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)
    with guarding(hooks):
        return played(seen, lambda: str(crew(seen, [[LS, RM, ("shell", {"command": "pwd"})]]).kickoff()), hooks)


def crew_again_after_a_failure() -> Any:
    seen, hooks = Seen(), guarded_prompts()
    made = crew(seen, [ValueError("model down")], "go {where}")
    with guarding(hooks):
        played(seen, lambda: made.kickoff(inputs={"where": "home"}))
        return played(seen, lambda: str(made.kickoff(inputs={"where": "to the secret place"})), hooks)


def agent_again_after_a_failure() -> Any:
    seen, hooks = Seen(), guarded_prompts()
    [agent] = crew(seen, [ValueError("model down")]).agents
    with guarding(hooks):
        played(seen, lambda: agent.kickoff("go home"))
        return played(seen, lambda: str(agent.kickoff("go to the secret place")), hooks)


def inputs_outside_of_descriptions() -> Any:
    seen, hooks = Seen(), guarded_prompts()
    with guarding(hooks):
        return played(seen, lambda: str(crew(seen, []).kickoff(inputs={"goal": "the secret"})), hooks)


def cancelled(*, alone: bool = False) -> Any:
    """Work that is cancelled while its model thinks, in a thread that goes on; `alone`: of an agent without a crew."""
    seen, hooks, asked = Seen(), Watched(), threading.Event()
    reached: Any = None

    class Slow(Native):
        def call(self, *args: Any, **options: Any) -> Any:
            reached()
            asked.wait(30)
            return super().call(*args, **options)

    async def work() -> str:
        nonlocal reached
        waiting = asyncio.Event()
        reached = partial(asyncio.get_running_loop().call_soon_threadsafe, waiting.set)
        made = crew(seen, [])
        made.agents[0].llm = Slow(model="scripted", seen=seen, turns=iter([LS, *["done"] * 5]))
        task = asyncio.create_task(made.agents[0].akickoff("go") if alone else made.akickoff())
        await waiting.wait()
        task.cancel()
        await asyncio.wait([task])
        asked.set()
        return "cancelled" if task.cancelled() else f"went on: {task.exception()}"

    with guarding(hooks):
        return played(seen, lambda: asyncio.run(work()), hooks)


CASES = {
    "cancelled": cancelled,
    "cancelled_alone": partial(cancelled, alone=True),
} | {
    case.__name__: case
    for case in (
        two_sets, misfitting_rewrite, calls_at_once, crew_again_after_a_failure, agent_again_after_a_failure,
        inputs_outside_of_descriptions,
    )
}  # fmt: skip
