"""What tools may ask of the agent while they run: events to fire, subagents to start, skills to load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import structs

from hookline.agent import hook_messages
from hookline.agent.elicitation import elicit
from hookline.agent.models.base import ModelRequest, ModelResponse
from hookline.agent.models.choose import resolve
from hookline.agent.session.session import Conversation
from hookline.agent.tools import Task, ToolEnv, ToolResult, failure
from hookline.core.engine import Verdict
from hookline.errors import HooklineError
from hookline.events import CwdChanged, Event, TaskCompleted, TaskCreated, WorktreeCreate, WorktreeRemove
from hookline.replies import Decision


def surroundings(talk: Conversation, tool_use_id: str) -> ToolEnv:
    """What one call is handed: where it works, and the agent's own abilities."""
    return replace(
        talk.tool_env(tool_use_id),
        fire=_firing(talk),
        cwd_changed=_moving(talk),
        task_created=_tasking(talk, TaskCreated),
        task_completed=_tasking(talk, TaskCompleted),
        spawn_agent=_spawning(talk),
        run_skill=_skilling(talk),
        elicit=partial(elicit, talk),
        worktree_create=partial(worktree_create, talk),
        worktree_remove=partial(worktree_remove, talk),
        ask_model=partial(ask_model, talk),
    )


async def ask_model(talk: Conversation, request: ModelRequest, *, small: bool) -> ModelResponse:
    """An answer outside the conversation, which counts as the session's own; raises `ModelError`."""
    session = talk.session
    if small and session.model_name.startswith("claude-"):
        request = structs.replace(request, model=resolve("haiku", session.environ))
    response = await session.model.respond(request)
    session.count(response.message)
    return response


async def worktree_create(talk: Conversation, name: str) -> str | None:
    """WorktreeCreate: a hook may make the worktree and say where; one that fails makes it impossible."""
    verdict = await talk.fire(WorktreeCreate, name=name)
    if not verdict.outcomes:
        return None
    path = verdict.reply.specific.worktree_path if verdict.reply.specific else None
    if verdict.blocked or path is None:
        failed = (one.stderr.strip() or str(one.error) for one in verdict.failures)
        why = verdict.reason or next(failed, "no hook said where it is")
        raise HooklineError(f"the worktree was not created: {why}")
    return path


async def worktree_remove(talk: Conversation, path: str) -> str | None:
    """WorktreeRemove: the hook that made it takes it away."""
    await talk.fire(WorktreeRemove, worktree_path=path)
    return None


def _firing(talk: Conversation) -> Callable[[Event], Awaitable[Verdict]]:
    async def fire(event: Event) -> Verdict:
        return await talk.session.hooks.fire(event)

    return fire


def _moving(talk: Conversation) -> Callable[[str, str], Awaitable[None]]:
    async def cwd_changed(old: str, new: str) -> None:
        """CwdChanged: hooks may say what to watch from now on."""
        verdict = await talk.fire(CwdChanged, cwd=old, old_cwd=old, new_cwd=new)
        if verdict.reply.specific is not None and talk.session.watcher is not None:
            talk.session.watcher.add(verdict.reply.specific.watch_paths)

    return cwd_changed


def _tasking(talk: Conversation, kind: type[TaskCreated | TaskCompleted]) -> Callable[[Task], Awaitable[str | None]]:
    return partial(ask_about, talk, kind)


async def ask_about(talk: Conversation, kind: type[TaskCreated | TaskCompleted], task: Task) -> str | None:
    """TaskCreated, TaskCompleted: a block refuses the step and says why."""
    about = {"task_id": task.id, "task_subject": task.subject, "task_description": task.description}
    team = talk.session.id if task.owner in talk.session.teammates else None
    verdict = await talk.fire(kind, **about, teammate_name=task.owner, team_name=team)
    return hook_messages.reason_of(verdict) if verdict.decision is Decision.DENY else None


def _spawning(talk: Conversation) -> Callable[[dict[str, Any], ToolEnv], Awaitable[ToolResult]]:
    async def spawn(given: dict[str, Any], env: ToolEnv) -> ToolResult:
        spawn_agent = talk.session.spawn_agent
        if spawn_agent is None:
            return failure("subagents are not available here")
        return await spawn_agent(talk, given, env.tool_use_id)

    return spawn


def _skilling(talk: Conversation) -> Callable[[dict[str, Any], ToolEnv], Awaitable[ToolResult]]:
    async def run(given: dict[str, Any], env: ToolEnv) -> ToolResult:
        from hookline.agent.context.slash_commands import use_skill

        return await use_skill(talk, given["skill"], given.get("args") or "")

    return run
