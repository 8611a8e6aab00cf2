"""What is to be done, by whom, and what waits for what: the tasks of one session, shared with its teammates."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, structs

__all__ = ["Task", "TaskList"]

Status = Literal["pending", "in_progress", "completed"]


class Task(Struct, frozen=True):
    """One piece of work."""

    id: str
    subject: str
    description: str = ""
    status: Status = "pending"
    owner: str | None = None
    active_form: str | None = None
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class TaskList:
    """Tasks by id, numbered from 1 in the order they were created."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._last = 0

    def draft(self, subject: str, description: str, **more: Any) -> Task:
        """The next task, numbered but not yet listed; a refused draft's number is not used again."""
        self._last += 1
        return Task(str(self._last), subject, description, **more)

    def put(self, task: Task) -> Task:
        """List a task, or replace the one of its id."""
        self._tasks[task.id] = task
        return task

    def get(self, id: str) -> Task | None:
        """The task of that number, if it is listed."""
        return self._tasks.get(id)

    def remove(self, id: str) -> None:
        """Forget a task and every link to it."""
        self._tasks.pop(id, None)
        for task in self.all():
            self.put(structs.replace(task, blocks=_without(task.blocks, id), blocked_by=_without(task.blocked_by, id)))

    def link(self, blocker: str, blocked: str) -> None:
        """`blocked` waits for `blocker`; ids that are not listed are left alone."""
        first, second = self.get(blocker), self.get(blocked)
        if first and second and blocker != blocked:
            self.put(structs.replace(first, blocks=_with(first.blocks, blocked)))
            self.put(structs.replace(second, blocked_by=_with(second.blocked_by, blocker)))

    def all(self) -> tuple[Task, ...]:
        """Every task, oldest first."""
        return tuple(self._tasks.values())

    def open_blockers(self, task: Task) -> list[str]:
        """The unfinished tasks this one waits for."""
        return [name for name in task.blocked_by if (other := self.get(name)) and other.status != "completed"]

    def claim(self, owner: str) -> Task | None:
        """Give `owner` the first task that is pending, unowned and not blocked; None if there is none."""
        for task in self.all():
            if task.status == "pending" and task.owner is None and not self.open_blockers(task):
                return self.put(structs.replace(task, owner=owner, status="in_progress"))
        return None


def _with(ids: tuple[str, ...], id: str) -> tuple[str, ...]:
    return ids if id in ids else (*ids, id)


def _without(ids: tuple[str, ...], id: str) -> tuple[str, ...]:
    return tuple(other for other in ids if other != id)
