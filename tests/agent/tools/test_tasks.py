"""The task list and its tools."""

from __future__ import annotations

from typing import Any

from hookline.agent.tools import Task, TaskList, ToolEnv, ToolResult, default_tools
from hookline.events import Event
from tests.agent.tools.hosting import hosted


async def call(env: ToolEnv, name: str, **given: Any) -> ToolResult:
    tool = default_tools()[name]
    return await tool.run(tool.validate(given), env)


async def two_tasks(env: ToolEnv) -> None:
    await call(env, "TaskCreate", subject="SUBJ", description="DESC")
    await call(env, "TaskCreate", subject="SUBJ2", description="DESC2")
    await call(env, "TaskUpdate", taskId="2", addBlockedBy=["1"], owner="me")


async def test_a_task_is_created_and_numbered(env: ToolEnv) -> None:
    """Model and hooks are told its number."""
    assert await call(env, "TaskCreate", subject="SUBJ", description="DESC") == ToolResult(
        "Task #1 created successfully: SUBJ", {"task": {"id": "1", "subject": "SUBJ", "description": "DESC"}}
    )


async def test_tasks_wait_for_each_other(env: ToolEnv) -> None:
    """The list and the single view show it from both sides."""
    await two_tasks(env)
    await call(env, "TaskUpdate", taskId="1", status="in_progress")

    assert (await call(env, "TaskList")).content == "#1 [in_progress] SUBJ\n#2 [pending] SUBJ2 (me) [blocked by #1]"
    assert (await call(env, "TaskGet", taskId="1")).content == (
        "Task #1: SUBJ\nStatus: in_progress\nDescription: DESC\nBlocks: #2"
    )


async def test_a_finished_task_blocks_nobody(env: ToolEnv) -> None:
    """The other one is free, and the change of status is told."""
    await two_tasks(env)

    result = await call(env, "TaskUpdate", taskId="1", status="completed")

    assert result.response["statusChange"] == {"from": "pending", "to": "completed"}
    assert (await call(env, "TaskList")).content == "#1 [completed] SUBJ\n#2 [pending] SUBJ2 (me)"


async def test_a_deleted_task_leaves_no_link(env: ToolEnv) -> None:
    """Nothing waits for what is not there."""
    await two_tasks(env)

    await call(env, "TaskUpdate", taskId="1", status="deleted")

    assert (await call(env, "TaskList")).content == "#2 [pending] SUBJ2 (me)"


async def test_a_task_that_is_not_there_is_said(env: ToolEnv) -> None:
    """Not an error for the model, as in Claude Code."""
    missing = await call(env, "TaskUpdate", taskId="9", status="completed")

    assert missing == ToolResult(
        "Task not found", {"success": False, "taskId": "9", "updatedFields": [], "error": "Task not found"}
    )
    assert (await call(env, "TaskGet", taskId="9")).response == {"task": None}


async def test_a_hook_can_refuse_a_new_task(env: ToolEnv) -> None:
    """FACTS §1: an error with the hook's feedback; the list stays as it was."""

    async def no(kind: type[Event], task: Task) -> str:
        return f"[cmd]: not {task.subject}"

    result = await call(hosted(env, task_block_reason=no), "TaskCreate", subject="S", description="D")

    assert (result.is_error, result.content) == (True, "TaskCreated hook feedback:\n[cmd]: not S")
    assert env.state.tasks.all() == ()


async def test_a_hook_can_refuse_that_a_task_is_done(env: ToolEnv) -> None:
    """FACTS §1: feedback, no error, and the task is as open as before."""
    asked: list[str] = []

    async def no(kind: type[Event], task: Task) -> str:
        asked.append(task.id)
        return "tests fail"

    await two_tasks(env)
    result = await call(hosted(env, task_block_reason=no), "TaskUpdate", taskId="1", status="completed")

    task = env.state.tasks.get("1")
    assert (result.is_error, result.content) == (False, "TaskCompleted hook feedback:\ntests fail")
    assert (asked, task and task.status) == (["1"], "pending")


async def test_metadata_is_merged_and_null_removes(env: ToolEnv) -> None:
    """Keys that are not named stay."""
    await call(env, "TaskCreate", subject="S", description="D", metadata={"a": 1, "b": 2})

    await call(env, "TaskUpdate", taskId="1", metadata={"a": None, "c": 3})

    task = env.state.tasks.get("1")
    assert task is not None
    assert task.metadata == {"b": 2, "c": 3}


def test_a_teammate_takes_the_first_free_task() -> None:
    """Pending, unowned, not waiting for another; None when there is none."""
    tasks = TaskList()
    first, second = tasks.put(tasks.draft("a", "")), tasks.put(tasks.draft("b", ""))
    tasks.link(first.id, second.id)

    mine = tasks.claim("me")

    assert mine is not None
    assert (mine.id, mine.owner, mine.status) == ("1", "me", "in_progress")
    assert tasks.claim("you") is None
