"""What tools may ask of the agent while they run: events to fire, subagents to start, skills to load."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from hookline.agent.context.prompts import use_skill
from hookline.agent.models.base import ModelRequest, ModelResponse
from hookline.agent.models.choose import resolve
from hookline.agent.session.session import Conversation
from hookline.agent.subagents import spawn_agent, task_block_reason
from hookline.agent.tools import Task, Tool, ToolHost, ToolResult
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


class AgentToolHost(ToolHost):
    """The agent, as the tools of one conversation see it."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def tools(self) -> Mapping[str, Tool]:
        return self._conversation.tool_set

    async def ask_model(self, request: ModelRequest, *, small: bool) -> ModelResponse:
        """An answer outside the conversation, which counts as the session's own; raises `ModelError`."""
        session = self._conversation.session
        if small and session.model.name.startswith("claude-"):
            request = structs.replace(request, model=resolve("haiku", session.environ))
        response = await session.model.respond(request)
        session.count(response.message)
        return response

    async def worktree_create(self, name: str) -> str | None:
        """WorktreeCreate: a hook may make the worktree and say where; one that fails makes it impossible."""
        verdict = await self._conversation.fire(WorktreeCreate, name=name)
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

    async def worktree_remove(self, path: str) -> None:
        """WorktreeRemove: the hook that made it takes it away."""
        await self._conversation.fire(WorktreeRemove, worktree_path=path)

    async def cwd_changed(self, old: str, new: str) -> None:
        """CwdChanged: hooks may say what to watch from now on."""
        verdict = await self._conversation.fire(CwdChanged, cwd=old, old_cwd=old, new_cwd=new)
        if verdict.reply.specific is not None:
            self._conversation.session.watch(verdict.reply.specific.watch_paths)

    async def task_block_reason(self, kind: type[TaskCreated | TaskCompleted], task: Task) -> str | None:
        return await task_block_reason(self._conversation, kind, task)

    async def spawn_agent(self, given: dict[str, Any], tool_use_id: str) -> ToolResult:
        return await spawn_agent(self._conversation, given, tool_use_id)

    async def run_skill(self, name: str, arguments: str) -> ToolResult:
        return await use_skill(self._conversation, name, arguments)

    async def elicit(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """An MCP server asks the user: Elicitation (may answer, may decline) → the host → ElicitationResult.

        Hooks on the latter have the last word. Without a host the answer is cancel.
        """
        conversation, mode = self._conversation, str(request.get("mode") or "form")
        asked = {"url": request.get("url"), "requested_schema": request.get("requestedSchema")}
        text = str(request.get("message") or "")
        verdict = await conversation.fire(Elicitation, mcp_server_name=server, message=text, mode=mode, **asked)
        answer = _said(verdict)
        if answer is not None:
            return answer
        ask = conversation.session.elicit
        answer = {"action": "cancel"} if ask is None else await ask(server, request)
        about = {"action": str(answer.get("action") or "cancel"), "content": answer.get("content")}
        verdict = await conversation.fire(ElicitationResult, mcp_server_name=server, mode=mode, **about)
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
