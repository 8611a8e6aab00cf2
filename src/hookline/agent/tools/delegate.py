"""Tools whose work is the session's own: Agent, Skill, ToolSearch, the shared task list, and StructuredOutput.

Creating or completing a task first asks the TaskCreated and TaskCompleted hooks (`task_block_reason`); feedback refuses
the step and is told to the model. StructuredOutput takes the answer when a schema was asked for (`--json-schema`).
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, structs

from hookline.agent.tools.base import Task, TaskList, Tool, ToolEnv, ToolResult, failure
from hookline.errors import ConfigError, ToolInputInvalid
from hookline.events import TaskCompleted, TaskCreated
from hookline.hosts.gateway.messages import misfits


class Agent(Tool):
    """Give a task to a subagent, which works on it with its own context and answers once."""

    within_session = True  # what a subagent does is asked about there
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        return await env.host.spawn_agent(given, env.tool_use_id)


class Skill(Tool):
    """Load a skill: instructions for a particular kind of work."""

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        return await env.host.run_skill(given["skill"], given.get("args") or "")


class ToolSearch(Tool):
    """Find tools: `select:Name,Name` for those names, or words from their names and descriptions."""

    read_only = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """The tools that fit, best first; here every tool is always loaded."""
        known, query = env.host.tools(), given["query"]
        if query.startswith("select:"):
            names = (name.strip() for name in query.removeprefix("select:").split(","))
            found = [name for name in names if name in known]
        else:
            words = [word.lower() for word in re.findall(r"\w+", query)]
            scores = {
                name: sum(2 * (word in name.lower()) + (word in tool.description.lower()) for word in words)
                for name, tool in known.items()
            }
            ranked = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])
            found = ranked[: int(given["max_results"])]
        lines = [f"{name}: {known[name].description}" for name in found]
        response = {"matches": found, "query": query, "total_deferred_tools": len(known)}
        return ToolResult("\n".join(lines) or "No matching tools found", response)


class StructuredOutput(Tool):
    """Gives your final answer in the form that was asked for. Call it exactly once, when everything else is done."""

    Input = Struct
    within_session = True

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)
        self.answer: Any = UNSET  # the answer, once it has been given

    @property
    def input_schema(self) -> dict[str, Any]:
        return self._schema

    def validate(self, given: Any) -> dict[str, Any]:
        """The answer, if it fits; raises `ToolInputInvalid` with every misfit."""
        problems = misfits(given, self._schema)
        if problems or not isinstance(given, dict):
            raise ToolInputInvalid(self.name, problems or ["/: expected an object"])
        return given

    rewritten = validate

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        self.answer = given
        return ToolResult("Structured output provided successfully", "Structured output provided successfully")


def read_schema(text: str) -> dict[str, Any]:
    """The schema of `--json-schema`, which describes an object; raises `ConfigError`."""
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise ConfigError("--json-schema", f'expected JSON such as {{"type": "object", …}}: {problem}') from None
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ConfigError("--json-schema", 'expected the schema of an object, such as `{"type": "object", …}`')
    return {"type": "object", **schema}


class TaskCreate(Tool):
    """Add a task to the session's task list."""

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
