"""Teammates: agents with a name that work in the background, through one task list.

    its prompt → tasks not taken yet, one after another → TeammateIdle (may send it back) → rest

A task that a teammate leaves in progress counts as done once its turn is over, unless a TaskCompleted hook objects:
then the task stays open, the teammate is told why, and goes on with it.
"""

from __future__ import annotations

from msgspec import structs

from hookline.agent import hook_messages
from hookline.agent.session.results import TurnEnd
from hookline.agent.session.session import Conversation
from hookline.agent.tool_host import task_block_reason
from hookline.agent.tools import Task
from hookline.agent.turn import run_turn
from hookline.events import TaskCompleted, TeammateIdle

#: how often in a row hooks may send a teammate back with nothing new to do
MOST_SENT_BACK = 8


async def work_through(conversation: Conversation, name: str, ending: TurnEnd) -> TurnEnd:
    """Go on after a first turn, until there is nothing left to do and no hook objects; how the last turn ended."""
    mate = _Teammate(conversation, name)
    while not ending.is_error and (told := await mate.next()) is not None:
        conversation.add_user(told)
        ending, _ = await run_turn(conversation)
    return ending


class _Teammate:
    """What one teammate is told between its turns."""

    def __init__(self, conversation: Conversation, name: str) -> None:
        self.conversation, self.name = conversation, name
        self.sent_back = 0
        self.given_up: set[str] = set()

    async def next(self) -> str | None:
        """What to do next: fix what a hook objects to, a new task, or a hook's reason not to rest; None to rest."""
        return await self._objection() or self._task() or await self._reason()

    async def _objection(self) -> str | None:
        for task in self._in_progress():
            why = await task_block_reason(self.conversation, TaskCompleted, task)
            if why is None:
                self.conversation.state.tasks.put(structs.replace(task, status="completed"))
            elif self._goes_back():
                return f"Task #{task.id} is not done. TaskCompleted hook feedback:\n{why}"
            else:
                self.given_up.add(task.id)
        return None

    def _in_progress(self) -> list[Task]:
        mine = [task for task in self.conversation.state.tasks.all() if task.owner == self.name]
        return [task for task in mine if task.status == "in_progress" and task.id not in self.given_up]

    def _task(self) -> str | None:
        task = self.conversation.state.tasks.claim(self.name)
        if task is None:
            return None
        self.sent_back = 0
        return f"Task #{task.id} is yours now: {task.subject}\n{task.description}"

    async def _reason(self) -> str | None:
        team = self.conversation.session.id
        verdict = await self.conversation.fire(TeammateIdle, teammate_name=self.name, team_name=team)
        if not verdict.keep_going or verdict.stop or not self._goes_back():
            return None
        return hook_messages.teammate_feedback(verdict.reply.keep_going_reasons)

    def _goes_back(self) -> bool:
        """Whether it may be sent back once more; a hook that never lets go is overruled."""
        self.sent_back += 1
        if self.sent_back <= MOST_SENT_BACK:
            return True
        self.conversation.session.output.inform(
            f"hooks sent teammate `{self.name}` back {MOST_SENT_BACK} times in a row; it rests", level="warning"
        )
        return False
