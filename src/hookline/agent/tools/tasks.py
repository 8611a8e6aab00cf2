"""The tools of the shared task list.

Creating or completing a task first asks `env.task_created` /
`env.task_completed` (the TaskCreated and TaskCompleted hooks); feedback refuses the step and is told to the model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from hookline.agent.tools.base import Task, TaskList, Tool, ToolEnv, ToolResult, failure

__all__ = ["TaskCreate", "TaskGet", "TaskListTool", "TaskUpdate"]


class CreateInput(Struct, frozen=True, rename="camel"):
    subject: Annotated[str, Meta(description="a short title, in the imperative")]
    description: Annotated[str, Meta(description="what needs to be done")]
    active_form: Annotated[str, Meta(description="shown while in progress: `Running tests`")] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class TaskCreate(Tool):
    """Adds a task to the list, unless a TaskCreated hook objects."""

    name = "TaskCreate"
    description = "Add a task to the session's task list."
    Input = CreateInput
    within_session = True
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """List it, unless refused."""
        tasks = env.state.tasks
        task = tasks.draft(
            given["subject"],
            given["description"],
            active_form=given.get("activeForm"),
            metadata=given.get("metadata") or {},
        )
        feedback = await _ask(env.task_created, task)
        if feedback is not None:
            return failure(f"TaskCreated hook feedback:\n{feedback}")
        tasks.put(task)
        response = {"task": {"id": task.id, "subject": task.subject, "description": task.description}}
        return ToolResult(f"Task #{task.id} created successfully: {task.subject}", response)


class UpdateInput(Struct, frozen=True, rename="camel"):
    task_id: Annotated[str, Meta(description="the task's number")]
    subject: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    active_form: str | UnsetType = UNSET
    status: Literal["pending", "in_progress", "completed", "deleted"] | UnsetType = UNSET
    add_blocks: Annotated[list[str], Meta(description="tasks that wait for this one")] | UnsetType = UNSET
    add_blocked_by: Annotated[list[str], Meta(description="tasks this one waits for")] | UnsetType = UNSET
    owner: Annotated[str, Meta(description="who works on it")] | UnsetType = UNSET
    metadata: Annotated[dict[str, Any], Meta(description="merged in; a null value removes its key")] | UnsetType = UNSET


#: input name → field of Task, in the order changes are reported
PLAIN = {
    "subject": "subject",
    "description": "description",
    "activeForm": "active_form",
    "owner": "owner",
    "metadata": "metadata",
}


class TaskUpdate(Tool):
    """Changes a task; completing one first asks the TaskCompleted hooks."""

    name = "TaskUpdate"
    description = "Change a task: its status, owner, words, or what it waits for. Status `deleted` removes it."
    Input = UpdateInput
    within_session = True
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Change what is given; a refused completion changes nothing."""
        tasks, number = env.state.tasks, given["taskId"]
        task = tasks.get(number)
        if task is None:
            return ToolResult("Task not found", _refused(number, "Task not found"))
        new = given.get("status", task.status)
        if new == "deleted":
            tasks.remove(number)
            return _updated(number, ["deleted"], {"from": task.status, "to": "deleted"})
        changes = _changes(task, given)
        updated = structs.replace(task, **changes)
        if new == "completed" and task.status != "completed":
            feedback = await _ask(env.task_completed, updated)
            if feedback is not None:
                return ToolResult(f"TaskCompleted hook feedback:\n{feedback}", _refused(number, feedback))
        tasks.put(structs.replace(updated, status=new))
        change = {"from": task.status, "to": new} if new != task.status else None
        names = [name for name, target in PLAIN.items() if target in changes] + ["status"] * bool(change)
        return _updated(number, names + _link(tasks, number, given), change)


class GetInput(Struct, frozen=True, rename="camel"):
    task_id: Annotated[str, Meta(description="the task's number")]


class TaskGet(Tool):
    """Shows one task in full."""

    name = "TaskGet"
    description = "Show one task in full."
    Input = GetInput
    read_only = True
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Its words, state and links."""
        task = env.state.tasks.get(given["taskId"])
        if task is None:
            return ToolResult("Task not found", {"task": None})
        lines = [f"Task #{task.id}: {task.subject}", f"Status: {task.status}", f"Description: {task.description}"]
        links = (("Blocked by", task.blocked_by), ("Blocks", task.blocks))
        lines += [f"{word}: {', '.join(f'#{name}' for name in ids)}" for word, ids in links if ids]
        shown = {"id": task.id, "subject": task.subject, "description": task.description, "status": task.status}
        return ToolResult(
            "\n".join(lines), {"task": {**shown, "blocks": list(task.blocks), "blockedBy": list(task.blocked_by)}}
        )


class ListInput(Struct, frozen=True):
    pass


class TaskListTool(Tool):
    """Shows every task in a line."""

    name = "TaskList"
    description = "Show every task of the session, one line each."
    Input = ListInput
    read_only = True
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """All of them, in the order they were created."""
        tasks = env.state.tasks
        rows = [_summary(task, tasks.open_blockers(task)) for task in tasks.all()]
        lines = [_line(row) for row in rows]
        return ToolResult("\n".join(lines) or "No tasks found", {"tasks": rows})


async def _ask(hook: Callable[[Task], Awaitable[str | None]] | None, task: Task) -> str | None:
    return await hook(task) if hook else None


def _changes(task: Task, given: dict[str, Any]) -> dict[str, Any]:
    """What the call changes of the task's own fields."""
    wanted = {target: given[name] for name, target in PLAIN.items() if name in given}
    if "metadata" in wanted:
        merged = {**task.metadata, **wanted["metadata"]}
        wanted["metadata"] = {key: value for key, value in merged.items() if value is not None}
    return {target: value for target, value in wanted.items() if value != getattr(task, target)}


def _refused(id: str, why: str) -> dict[str, Any]:
    return {"success": False, "taskId": id, "updatedFields": [], "error": why}


def _updated(id: str, names: list[str], change: dict[str, str] | None) -> ToolResult:
    response: dict[str, Any] = {"success": True, "taskId": id, "updatedFields": names}
    if change:
        response["statusChange"] = change
    return ToolResult(f"Updated task #{id} {', '.join(names)}".rstrip(), response)


def _link(tasks: TaskList, id: str, given: dict[str, Any]) -> list[str]:
    for other in given.get("addBlocks", ()):
        tasks.link(id, other)
    for other in given.get("addBlockedBy", ()):
        tasks.link(other, id)
    return [name for key, name in (("addBlocks", "blocks"), ("addBlockedBy", "blockedBy")) if given.get(key)]


def _summary(task: Task, blockers: list[str]) -> dict[str, Any]:
    owner = {"owner": task.owner} if task.owner else {}
    return {"id": task.id, "subject": task.subject, "status": task.status, **owner, "blockedBy": blockers}


def _line(row: dict[str, Any]) -> str:
    owner = f" ({row['owner']})" if "owner" in row else ""
    waits = f" [blocked by {', '.join(f'#{name}' for name in row['blockedBy'])}]" if row["blockedBy"] else ""
    return f"#{row['id']} [{row['status']}] {row['subject']}{owner}{waits}"
