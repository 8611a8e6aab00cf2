"""Watch subagents start and stop, and send one back that has not answered.

    python examples/subagent_monitor.py

SubagentStart may add context, or refuse the subagent; SubagentStop may send it back to work, as here the one that
answers without naming a file.
"""

import asyncio
import tempfile
from pathlib import Path

from hookline import Hooks, Reply, context, keep_going
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.events import SubagentStart, SubagentStop
from hookline.guards.permissions import read_rules

hooks = Hooks()


@hooks.on(SubagentStart)
async def started(event: SubagentStart) -> Reply:
    print(f"started: a subagent of type {event.agent_type}")
    return context("name the file that your answer is about")


@hooks.on(SubagentStop)
async def stopped(event: SubagentStop) -> Reply | None:
    answer = event.last_assistant_message or ""
    print(f"wants to stop: {answer!r}")
    if ".py" not in answer and not event.stop_hook_active:
        return keep_going("which file is it?")
    print("stopped")
    return None


async def main(project: Path) -> None:
    task = {"description": "find main", "prompt": "Where is main?", "run_in_background": False}
    model = Scripted.of(
        {"tools": [["Agent", task]]},
        "The subagent found it.",
        lanes={"subagent": {"first": "Where is main", "turns": [{"text": "Found it."}, {"text": "It is in app.py."}]}},
    )
    rules = read_rules({"allow": ["Agent"]})
    async with Agent(model=model, hooks=hooks, cwd=project, rules=rules, persist=False) as agent:
        result = await agent.run("find main")
    print("the agent says:", result.text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
