"""What the tests of the loop share: a scripted agent in a folder of its own, and a hook that takes notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hookline import HookEvent, Hooks
from hookline.agent import Agent
from hookline.agent.messages import Reminder, ToolOutput, User
from hookline.agent.models import ModelRequest
from hookline.agent.models.scripted import Scripted
from hookline.agent.stream_json.output import Note
from hookline.events import Event
from hookline.guards.permissions import read_rules
from tests.environ import clean_environ


def bash(command: str, **more: Any) -> dict[str, Any]:
    """A turn of the model that calls Bash."""
    return {"tools": [["Bash", {"command": command, **more}]]}


def agent_on(folder: Path, *turns: Any, hooks: Hooks | None = None, lanes: Any = None, **options: Any) -> Agent:
    """An agent that may use Bash, Read, Write and Agent without being asked."""
    options.setdefault("rules", read_rules({}, allowed=["Bash", "Read", "Write", "Agent", "TaskCreate", "TaskUpdate"]))
    options.setdefault("environ", clean_environ(folder))
    return Agent(model=Scripted.of(*turns, lanes=lanes), hooks=hooks or Hooks(), cwd=folder, **options)


def requests_of(agent: Agent) -> list[ModelRequest]:
    """What the scripted model was asked."""
    model = agent.session.model
    assert isinstance(model, Scripted)
    return model.requests


def reminders(request: ModelRequest) -> list[str]:
    """What hooks added to a request, up to then."""
    return [message.text for message in request.messages if isinstance(message, Reminder)]


def results(request: ModelRequest) -> list[ToolOutput]:
    """The tool results in a request."""
    blocks = [block for message in request.messages if isinstance(message, User) for block in message.content]
    return [block for block in blocks if isinstance(block, ToolOutput)]


def recorded(hooks: Hooks) -> list[str]:
    """The names of all events from now on, in order."""
    seen: list[str] = []

    @hooks.on(*HookEvent, rejudge=False, name="recorder", priority=1000)
    async def take_note(event: Event) -> None:
        seen.append(event.event_name)

    return seen


def heard(agent: Agent) -> list[Note]:
    """What the agent says to its host from now on."""
    notes: list[Note] = []
    agent.output.listeners.append(notes.append)
    return notes
