"""What tools may ask of the agent while they run: events to fire, subagents to start, skills to load."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from hookline.agent import hook_messages
from hookline.agent.models.base import ModelRequest, ModelResponse
from hookline.agent.models.choose import resolve
from hookline.agent.session.session import Conversation
from hookline.agent.tools import Task, ToolEnv, ToolResult, failure
from hookline.core.engine import Verdict
from hookline.errors import HooklineError
from hookline.events import (
    CwdChanged,
    Elicitation,
    ElicitationResult,
    Notification,
    TaskCompleted,
    TaskCreated,
    WorktreeCreate,
    WorktreeRemove,
)
from hookline.replies import Decision


def build_tool_env(conversation: Conversation, tool_use_id: str) -> ToolEnv:
    """What one call is handed: where it works, and the agent's own abilities."""
    return replace(
        conversation.tool_env(tool_use_id),
        fire=conversation.session.hooks.fire,
        cwd_changed=partial(cwd_changed, conversation),
        task_created=partial(task_block_reason, conversation, TaskCreated),
        task_completed=partial(task_block_reason, conversation, TaskCompleted),
        spawn_agent=partial(spawn_agent, conversation),
        run_skill=partial(run_skill, conversation),
        elicit=partial(elicit, conversation),
        worktree_create=partial(worktree_create, conversation),
        worktree_remove=partial(worktree_remove, conversation),
        ask_model=partial(ask_model, conversation),
    )


async def ask_model(conversation: Conversation, request: ModelRequest, *, small: bool) -> ModelResponse:
    """An answer outside the conversation, which counts as the session's own; raises `ModelError`."""
    session = conversation.session
    if small and session.model_name.startswith("claude-"):
        request = structs.replace(request, model=resolve("haiku", session.environ))
    response = await session.model.respond(request)
    session.count(response.message)
    return response


async def worktree_create(conversation: Conversation, name: str) -> str | None:
    """WorktreeCreate: a hook may make the worktree and say where; one that fails makes it impossible."""
    verdict = await conversation.fire(WorktreeCreate, name=name)
    if not verdict.outcomes:
        return None
    path = verdict.reply.specific.worktree_path if verdict.reply.specific else None
    if verdict.blocked or path is None:
        failed = (one.stderr.strip() or str(one.error) for one in verdict.failures)
        why = verdict.reason or next(failed, "no hook said where it is")
        raise HooklineError(f"the worktree was not created: {why}")
    if not Path(path).is_dir():  # noqa: ASYNC240 - one look at the disk
        raise HooklineError(f"the worktree was not created: a hook names `{path}`, which is not a folder")
    return path


async def worktree_remove(conversation: Conversation, path: str) -> str | None:
    """WorktreeRemove: the hook that made it takes it away."""
    await conversation.fire(WorktreeRemove, worktree_path=path)
    return None


async def cwd_changed(conversation: Conversation, old: str, new: str) -> None:
    """CwdChanged: hooks may say what to watch from now on."""
    verdict = await conversation.fire(CwdChanged, cwd=old, old_cwd=old, new_cwd=new)
    if verdict.reply.specific is not None and conversation.session.watcher is not None:
        conversation.session.watcher.add(verdict.reply.specific.watch_paths)


async def task_block_reason(
    conversation: Conversation, kind: type[TaskCreated | TaskCompleted], task: Task
) -> str | None:
    """TaskCreated, TaskCompleted: a block refuses the step and says why."""
    about = {"task_id": task.id, "task_subject": task.subject, "task_description": task.description}
    team = conversation.session.id if task.owner in conversation.session.teammates else None
    verdict = await conversation.fire(kind, **about, teammate_name=task.owner, team_name=team)
    return hook_messages.reason_of(verdict) if verdict.decision is Decision.DENY else None


async def spawn_agent(conversation: Conversation, given: dict[str, Any], env: ToolEnv) -> ToolResult:
    """A subagent at work for this conversation."""
    spawn = conversation.session.spawn_agent
    if spawn is None:
        return failure("subagents are not available here")
    return await spawn(conversation, given, env.tool_use_id)


async def run_skill(conversation: Conversation, given: dict[str, Any], _: ToolEnv) -> ToolResult:
    """A skill, loaded into this conversation."""
    from hookline.agent.context.slash_commands import use_skill

    return await use_skill(conversation, given["skill"], given.get("args") or "")


# -- an MCP server asks the user: hooks may answer first, and have the last word ----------------------------------
# Elicitation (may answer, may decline) → the host → ElicitationResult (may change the answer)


async def elicit(conversation: Conversation, server: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a server's question; without a host it is cancelled."""
    mode = str(request.get("mode") or "form")
    verdict = await conversation.fire(
        Elicitation,
        mcp_server_name=server,
        message=str(request.get("message") or ""),
        mode=mode,
        url=request.get("url"),
        requested_schema=request.get("requestedSchema"),
    )
    answer = _said(verdict)
    if answer is not None:
        return answer
    ask = conversation.session.elicit
    answer = {"action": "cancel"} if ask is None else await ask(server, request)
    action = str(answer.get("action") or "cancel")
    verdict = await conversation.fire(
        ElicitationResult, mcp_server_name=server, mode=mode, action=action, content=answer.get("content")
    )
    final = _said(verdict) or answer
    message = f'Elicitation response for server "{server}": {final["action"]}'
    conversation.remind_of_context(
        await conversation.fire(Notification, message=message, notification_type="elicitation_response")
    )
    return final


def _said(verdict: Verdict) -> dict[str, Any] | None:
    """What hooks answer in the user's place."""
    if verdict.blocked:
        return {"action": "decline"}
    more = verdict.reply.specific
    if more is None or more.action is None:
        return None
    return {"action": more.action, "content": more.content} if more.content is not None else {"action": more.action}
