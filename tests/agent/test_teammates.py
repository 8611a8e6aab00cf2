"""Teammates: named agents in the background, one task list, and hooks that send them back to work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny, keep_going
from hookline.agent import Agent
from hookline.agent.messages import User
from hookline.agent.subagents import MOST_SENT_BACK, spawn_agent
from hookline.agent.tools import Task, ToolResult
from hookline.events import Event, TaskCompleted, TeammateIdle
from hookline.replies import Reply
from tests.agent.driving import agent_on, heard, recorded, requests_of, results

# a model takes its time, so that teammates get to work side by side
ANN = {"ann": {"first": "^ANN", "turns": [{"text": "ann did it", "delay": 0.01}]}}
BEN = {"ben": {"first": "^BEN", "turns": [{"text": "ben did it", "delay": 0.01}]}}


class Team:
    """What a model does with TaskCreate, and with Agent calls that name a teammate."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.list = agent, agent.conversation.state.tasks

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.list.all()

    def add_task(self, subject: str, description: str = "", *, after: tuple[Task, ...] = ()) -> Task:
        task = self.list.put(self.list.draft(subject, description))
        for earlier in after:
            self.list.link(earlier.id, task.id)
        return task

    async def join(self, name: str, prompt: str) -> ToolResult:
        await self.agent.start()
        given = {"name": name, "prompt": prompt, "description": f"teammate {name}"}
        return await spawn_agent(self.agent.conversation, given, "")

    async def rest(self) -> None:
        """Wait until every teammate rests."""
        while self.agent.session.teammates:
            await asyncio.wait(self.agent.session.working, return_when=asyncio.FIRST_COMPLETED)


def told(agent: Any, lane: str) -> list[str]:
    """What a teammate was told on the user's side, up to its last request."""
    mine = [one for one in requests_of(agent) if str(getattr(one.messages[0], "text", "")).startswith(lane)]
    return [message.text for message in mine[-1].messages if isinstance(message, User)]


async def test_a_teammate_takes_one_task_after_another(tmp_path: Path) -> None:
    """It works on its prompt, then on every task nobody has taken, in order, and each is done after its turn."""
    async with agent_on(tmp_path, "unused", lanes=ANN) as agent:
        team = Team(agent)
        team.add_task("one", "the first")
        team.add_task("two", "the second")
        await team.join("ann", "ANN: work through the list")
        await team.rest()

    assert told(agent, "ANN") == [
        "ANN: work through the list",
        "Task #1 is yours now: one\nthe first",
        "Task #2 is yours now: two\nthe second",
    ]
    assert [(task.owner, task.status) for task in team.tasks] == [("ann", "completed")] * 2
    assert agent.session.teammates == set()


async def test_a_task_waits_for_those_before_it(tmp_path: Path) -> None:
    """What is blocked is claimed only once its blockers are done."""
    async with agent_on(tmp_path, "unused", lanes=ANN) as agent:
        team = Team(agent)
        first = team.add_task("first")
        team.add_task("last", after=(first,))
        await team.join("ann", "ANN")
        await team.rest()

    assert [text.split(":")[0] for text in told(agent, "ANN")] == [
        "ANN",
        "Task #1 is yours now",
        "Task #2 is yours now",
    ]


async def test_two_teammates_share_a_list_and_no_task_is_done_twice(tmp_path: Path) -> None:
    """Each task has one owner."""
    async with agent_on(tmp_path, "unused", lanes=ANN | BEN) as agent:
        team = Team(agent)
        for number in range(6):
            team.add_task(f"task {number}")
        await team.join("ann", "ANN")
        await team.join("ben", "BEN")
        await team.rest()

    owners = {task.id: task.owner for task in team.tasks}
    assert set(owners.values()) == {"ann", "ben"}
    claimed = [text for text in told(agent, "ANN") + told(agent, "BEN") if text.startswith("Task #")]
    assert sorted(text.split()[1] for text in claimed) == [f"#{number}" for number in owners]


async def test_a_task_completed_hook_sends_the_teammate_back_and_the_task_stays_open(tmp_path: Path) -> None:
    """The objection is told; the task is done only when no hook objects any more."""
    hooks = Hooks()
    asked: list[tuple[str, str | None, str | None]] = []

    @hooks.on(TaskCompleted)
    async def tested(event: TaskCompleted) -> Reply | None:
        status = next(task.status for task in team.tasks)
        asked.append((status, event.teammate_name, event.team_name))
        return deny("the tests fail") if len(asked) == 1 else None

    async with agent_on(tmp_path, "unused", hooks=hooks, lanes=ANN) as agent:
        team = Team(agent)
        team.add_task("one")
        await team.join("ann", "ANN")
        await team.rest()

    assert asked == [("in_progress", "ann", agent.session.id)] * 2
    assert told(agent, "ANN")[-1] == "Task #1 is not done. TaskCompleted hook feedback:\nthe tests fail"
    assert [task.status for task in team.tasks] == ["completed"]


async def test_a_teammate_idle_hook_sends_it_back_with_its_reason(tmp_path: Path) -> None:
    """`keep_going` is one more turn; without it the teammate rests, and the main agent hears of it."""
    hooks = Hooks()
    idle: list[tuple[str, str]] = []

    @hooks.on(TeammateIdle)
    async def look_again(event: TeammateIdle) -> Reply | None:
        idle.append((event.teammate_name, event.team_name))
        return keep_going("LOOK AGAIN") if len(idle) == 1 else None

    async with agent_on(tmp_path, "heard of it", hooks=hooks, lanes=ANN) as agent:
        team = Team(agent)
        await team.join("ann", "ANN")
        await team.rest()
        later = await agent.background()

    assert idle == [("ann", agent.session.id)] * 2
    assert told(agent, "ANN") == ["ANN", "TeammateIdle hook feedback:\nLOOK AGAIN"]
    assert later is not None
    assert later.text == "heard of it"


@pytest.mark.parametrize("event, reply", [(TeammateIdle, keep_going("ON")), (TaskCompleted, deny("NEVER"))])
async def test_a_hook_that_never_lets_go_is_overruled(tmp_path: Path, event: type[Event], reply: Reply) -> None:
    """After so many times in a row the teammate rests, the user is told, and an undone task stays open."""
    hooks = Hooks()

    @hooks.on(event)
    async def never(_: Any) -> Reply:
        return reply

    async with agent_on(tmp_path, "unused", hooks=hooks, lanes=ANN) as agent:
        notes = heard(agent)
        team = Team(agent)
        if event is TaskCompleted:
            team.add_task("one")
        await team.join("ann", "ANN")
        await team.rest()

    warnings = [note["content"] for note in notes if note.get("level") == "warning"]
    assert f"{MOST_SENT_BACK} times in a row" in warnings[0]
    assert [task.status for task in team.tasks] == (["in_progress"] if event is TaskCompleted else [])


async def test_the_model_forms_a_team_with_its_own_tools(tmp_path: Path) -> None:
    """TaskCreate and an Agent call with a name are all it takes; events come in the order of seeds/003 §7."""
    hooks = Hooks()
    create = {"tools": [["TaskCreate", {"subject": "S", "description": "D"}]]}
    mate = {"tools": [["Agent", {"description": "d", "prompt": "ANN", "name": "ann", "team_name": "ignored"}]]}
    done = {"tools": [["TaskUpdate", {"taskId": "1", "status": "completed"}]]}
    lanes = {"ann": {"first": "^ANN", "turns": [{"text": "ready"}, done, {"text": "did it"}]}}
    async with agent_on(tmp_path, create, mate, "waiting", "heard", hooks=hooks, lanes=lanes) as agent:
        seen = recorded(hooks)
        await agent.run("go")
        await agent.background()

    mattered = [name for name in seen if name.startswith(("Task", "Teammate", "Subagent"))]
    assert mattered == ["TaskCreated", "SubagentStart", "SubagentStop", "TaskCompleted", "SubagentStop", "TeammateIdle"]


async def test_a_name_stands_for_one_teammate(tmp_path: Path) -> None:
    """While it is at work nobody else can take its name, whoever asks."""
    slow = {"ann": {"first": "^ANN", "turns": [{"text": "at it", "delay": 30}]}}
    again = {"tools": [["Agent", {"description": "d", "prompt": "ANN", "name": "ann"}]]}
    async with agent_on(tmp_path, again, "done", lanes=slow) as agent:
        team = Team(agent)
        await team.join("ann", "ANN")
        once_more = await team.join("ann", "ANN")
        await agent.run("go")

    (refused,) = results(requests_of(agent)[-1])
    assert once_more.is_error
    assert refused.is_error
    assert once_more.content == refused.content
    assert "`ann` is at work already" in str(refused.content)
