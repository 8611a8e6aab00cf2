"""`Team`: hand out work from Python; the agent's own model need not know.

    team = Team(agent)
    team.add_task("write the tests", "one file per module")
    team.join("ann", "Work through the task list.")
    await team.rest()

A model forms the same team with its Agent tool (`name`) and the task tools: a session has one team and one list.
"""

from __future__ import annotations

import asyncio

from hookline.agent.agent import Agent
from hookline.agent.subagents.subagents import DEFAULT_KIND, spawn_agent
from hookline.agent.tools import Task
from hookline.errors import AgentError


class Team:
    """The teammates of an agent's session and the task list they share."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task, oldest first."""
        return self.agent.conversation.state.tasks.all()

    @property
    def members(self) -> tuple[str, ...]:
        """The teammates at work."""
        return tuple(self.agent.session.teammates)

    def add_task(self, subject: str, description: str = "", *, after: tuple[Task, ...] = ()) -> Task:
        """Add a task that waits for those in `after`; no hook is asked, because no model wants it."""
        tasks = self.agent.conversation.state.tasks
        task = tasks.put(tasks.draft(subject, description))
        for earlier in after:
            tasks.link(earlier.id, task.id)
        return tasks.get(task.id) or task

    async def join(self, name: str, prompt: str, *, kind: str = DEFAULT_KIND) -> None:
        """Let a teammate begin, in the background; raises `AgentError` if it cannot."""
        await self.agent.start()
        given = {"name": name, "prompt": prompt, "description": f"teammate {name}", "subagent_type": kind}
        launched = await spawn_agent(self.agent.conversation, given, "")
        if launched.is_error:
            raise AgentError(str(launched.content))

    async def rest(self) -> None:
        """Wait until every teammate rests; what they report waits for the agent's next turn."""
        while self.members:
            await asyncio.wait(self.agent.session.working, return_when=asyncio.FIRST_COMPLETED)
