"""The tools of the shared task list.

Creating or completing a task first asks the TaskCreated and TaskCompleted hooks (`task_block_reason`); feedback refuses
the step and is told to the model.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from hookline.agent.tools.base import Task, TaskList, Tool, ToolEnv, ToolResult, failure
from hookline.events import TaskCompleted, TaskCreated


class TaskCreate(Tool):
    """Add a task to the session's task list."""

    class Input(Struct, frozen=True, rename="camel"):
        subject: Annotated[str, Meta(description="a short title, in the imperative")]
        description: Annotated[str, Meta(description="what needs to be done")]
        active_form: Annotated[str, Meta(description="shown while in progress: `Running tests`")] | UnsetType = UNSET
        metadata: dict[str, Any] | UnsetType = UNSET

    within_session = True
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        tasks = env.state.tasks
        more = {"active_form": given.get("activeForm"), "metadata": given.get("metadata") or {}}
        task = tasks.draft(given["subject"], given["description"], **more)
        feedback = await env.host.task_block_reason(TaskCreated, task)
        if feedback is not None:
            return failure(f"TaskCreated hook feedback:\n{feedback}")
        tasks.put(task)
        response = {"task": {"id": task.id, "subject": task.subject, "description": task.description}}
        return ToolResult(f"Task #{task.id} created successfully: {task.subject}", response)


#: what of a task can simply be set, in the order changes are reported; a field that has another name here
PLAIN, FIELDS = ("subject", "description", "activeForm", "owner", "metadata"), {"activeForm": "active_form"}


class TaskUpdate(Tool):
    """Change a task: its status, owner, words, or what it waits for. Status `deleted` removes it."""

    class Input(Struct, frozen=True, rename="camel"):
        task_id: Annotated[str, Meta(description="the task's number")]
        subject: str | UnsetType = UNSET
        description: str | UnsetType = UNSET
        active_form: str | UnsetType = UNSET
        status: Literal["pending", "in_progress", "completed", "deleted"] | UnsetType = UNSET
        add_blocks: Annotated[list[str], Meta(description="tasks that wait for this one")] | UnsetType = UNSET
        add_blocked_by: Annotated[list[str], Meta(description="tasks this one waits for")] | UnsetType = UNSET
        owner: Annotated[str, Meta(description="who works on it")] | UnsetType = UNSET
        metadata: Annotated[dict[str, Any], Meta(description="merged in; a null value removes its key")] | UnsetType = (
            UNSET
        )

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
            feedback = await env.host.task_block_reason(TaskCompleted, updated)
            if feedback is not None:
                return ToolResult(f"TaskCompleted hook feedback:\n{feedback}", _refused(number, feedback))
        tasks.put(structs.replace(updated, status=new))
        change = {"from": task.status, "to": new} if new != task.status else None
        names = [name for name in PLAIN if FIELDS.get(name, name) in changes] + ["status"] * bool(change)
        return _updated(number, names + _link(tasks, number, given), change)


class TaskGet(Tool):
    """Show one task in full."""

    class Input(Struct, frozen=True, rename="camel"):
        task_id: Annotated[str, Meta(description="the task's number")]

    read_only = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        task = env.state.tasks.get(given["taskId"])
        if task is None:
            return ToolResult("Task not found", {"task": None})
        lines = [f"Task #{task.id}: {task.subject}", f"Status: {task.status}", f"Description: {task.description}"]
        links = (("Blocked by", task.blocked_by), ("Blocks", task.blocks))
        lines += [f"{word}: {', '.join(f'#{name}' for name in ids)}" for word, ids in links if ids]
        shown = {"id": task.id, "subject": task.subject, "description": task.description, "status": task.status}
        waits = {"blocks": list(task.blocks), "blockedBy": list(task.blocked_by)}
        return ToolResult("\n".join(lines), {"task": {**shown, **waits}})


class TaskListTool(Tool):
    """Show every task of the session, one line each."""

    name = "TaskList"

    class Input(Struct, frozen=True):
        pass

    read_only = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        tasks = env.state.tasks
        rows, lines = [], []
        for task in tasks.all():
            blockers = tasks.open_blockers(task)
            row = {"id": task.id, "subject": task.subject, "status": task.status}
            rows.append({**row, **({"owner": task.owner} if task.owner else {}), "blockedBy": blockers})
            owner = f" ({task.owner})" if task.owner else ""
            waits = f" [blocked by {', '.join(f'#{name}' for name in blockers)}]" if blockers else ""
            lines.append(f"#{task.id} [{task.status}] {task.subject}{owner}{waits}")
        return ToolResult("\n".join(lines) or "No tasks found", {"tasks": rows})


def _changes(task: Task, given: dict[str, Any]) -> dict[str, Any]:
    """What the call changes of the task's own fields."""
    wanted = {FIELDS.get(name, name): given[name] for name in PLAIN if name in given}
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
