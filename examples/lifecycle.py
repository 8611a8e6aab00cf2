"""Every event there is: one agent's life passes most of them, the rest are fired by hand.

    python examples/lifecycle.py

One hook listens to all events and prints what it hears. The model is scripted; the session, its tools, its subagent,
its tasks and its compaction are real.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hookline import HookEvent, Hooks
from hookline.agent import Agent
from hookline.agent.context.definitions import Skill
from hookline.agent.models.scripted import Scripted
from hookline.events import Event
from hookline.guards.permissions import read_rules
from hookline.testing import announced

heard: dict[str, int] = {}
hooks = Hooks()


@hooks.on(*HookEvent)
async def narrate(event: Event) -> None:
    """Print each event once, with what it was about."""
    if event.event_name not in heard:
        print(f"  {event.event_name:20} {event.subject or ''}".rstrip())
    heard[event.event_name] = heard.get(event.event_name, 0) + 1


SUBAGENT = {"description": "say hello", "prompt": "Say hello to me.", "run_in_background": False}
TEAMMATE = {"description": "look at tasks", "prompt": "Look at the tasks.", "name": "grace"}
TURNS: list[dict[str, Any]] = [
    {"tools": [["Bash", {"command": "mkdir inner && cd inner"}]]},
    {"tools": [["Bash", {"command": "false"}]]},
    {"tools": [["Write", {"file_path": "a.txt", "content": "needs permission, and nobody gives it"}]]},
    {"tools": [["TaskCreate", {"subject": "greet", "description": "greet the user"}]]},
    {"tools": [["TaskUpdate", {"taskId": "1", "status": "completed"}]]},
    {"tools": [["Agent", SUBAGENT], ["Agent", TEAMMATE]]},
    {"tools": [["EnterWorktree", {"name": "copy"}]]},
    {"text": "Hello!"},
]
LANES = {
    "subagent": {"first": "Say hello to me", "turns": [{"text": "Hello."}]},
    "teammate": {"first": "Look at the tasks", "turns": [{"text": "All done."}]},
    "summary": {"last": "(?i)summar", "turns": [{"text": "They said hello."}]},
    "outage": {"last": "Are you there", "turns": [{"status": 529}]},
}


async def main(project: Path) -> None:
    (project / "CLAUDE.md").write_text("Be polite.")
    agent = Agent(
        model=Scripted.of(*TURNS, lanes=LANES),
        hooks=hooks,
        cwd=project,
        rules=read_rules({"allow": ["Bash", "Agent", "TaskCreate", "TaskUpdate", "EnterWorktree"]}),
        skills={"greet": Skill(name="greet", body="Greet the user.", kind="command")},
        instructions=frozenset({"Project"}),
        setup="init",
        persist=False,
    )
    print("in an agent's life:")
    async with agent:
        await agent.run("/greet")
        await agent.background()  # the teammate is done
        await agent.run("/compact")
        await agent.run("Are you there?")

    print("\nfired by hand:")
    for name in HookEvent:
        if name not in heard:
            await hooks.fire(announced(name))
    print(f"\n{len(heard)} of {len(HookEvent)} events")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
