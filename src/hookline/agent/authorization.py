"""May this call run? Hooks, rules, the mode, PermissionRequest hooks, then whoever can be asked (FACTS.md §3).

PreToolUse's answer and the rules → allowed, denied, or somebody has to say
somebody: PermissionRequest hooks, all of them, then the host; nobody there means no
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from hookline.agent.hook_messages import asked
from hookline.agent.messages import ToolUse
from hookline.agent.permission_policy import Ask, as_asked
from hookline.agent.session.results import Ending
from hookline.agent.session.session import Conversation
from hookline.agent.tools import Tool
from hookline.core.engine import Verdict
from hookline.errors import ToolInputInvalid
from hookline.events import Notification, PermissionDenied, PermissionRequest
from hookline.guards.off_loop import aside
from hookline.guards.permissions import Mode, Permission, suggestions
from hookline.replies import Decision, Reply, allow, deny

#: seconds without an answer after which the user is notified that somebody waits
PATIENCE = 6.0


class Permitted(Struct, frozen=True, kw_only=True):
    """The input to run with, or none and why; `ending` if the answer ends the turn."""

    input: dict[str, Any] | None = None
    why: str = ""
    reminders: tuple[str, ...] = ()
    ending: Ending | None = None


async def may_run(talk: Conversation, tool: Tool, use: ToolUse, given: dict[str, Any], verdict: Verdict) -> Permitted:
    """Whether a call that hooks let pass may run, and with which input."""
    line = str(given.get("command") or given.get("pattern") or "")
    permission = await aside([line], lambda: permission_of(talk, tool, given, verdict), disk=True)
    if permission.behaviour == "allow":
        return Permitted(input=given)
    if permission.behaviour == "deny":
        return await _denied(talk, tool, use, given, permission)
    by_hook = permission.reason_type == "hook"
    reason = asked(verdict) if by_hook else permission.reason
    ask = Ask(
        tool_name=tool.name, input=given, tool_use_id=use.id, agent_id=talk.agent_id,
        suggestions=suggestions(tool.name, as_asked(tool, given)), reason=reason, reason_type=permission.reason_type,
    )  # fmt: skip
    reply = await (_host_says(talk, ask) if by_hook else _somebody_says(talk, tool, ask))
    return _answered(talk, tool, use, ask, reply)


def permission_of(talk: Conversation, tool: Tool, given: dict[str, Any], verdict: Verdict | None = None) -> Permission:
    """What rules, the mode and hooks say to a call of this conversation."""
    where = {"cwd": talk.state.cwd, "project_dir": talk.session.project_dir}
    return talk.session.policy.decide(tool, given, verdict, **where)


async def _denied(
    talk: Conversation, tool: Tool, use: ToolUse, given: dict[str, Any], permission: Permission
) -> Permitted:
    """A rule or the mode says no; PermissionDenied is for the mode's own refusals, as in Claude Code."""
    command = as_asked(tool, given).get("command") if permission.reason_type == "rule" else None
    what = f"{tool.name} with `{command}`" if isinstance(command, str) else tool.name
    why = f"Permission to use {what} was denied: {permission.reason}"
    _note(talk, use, given, why, permission.reason_type)
    if permission.reason_type != "mode" or talk.session.policy.mode is Mode.DONT_ASK:
        return Permitted(why=why)
    verdict = await talk.fire(
        PermissionDenied, tool_name=tool.name, tool_input=given, tool_use_id=use.id, reason=permission.reason
    )
    retry = verdict.reply.specific is not None and verdict.reply.specific.retry
    told = ("The PermissionDenied hook indicated you may retry this tool call.",) if retry else ()
    return Permitted(why=why, reminders=told)


async def _somebody_says(talk: Conversation, tool: Tool, ask: Ask) -> Reply | None:
    """All PermissionRequest hooks first, the strictest of them decides; only if none does is anybody else asked.

    A host that says yes at once must not outrun a hook that says no, and where a hook says yes no prompt appears.
    """
    said = await _hooks_say(talk, tool, ask)
    return said if said is not None else await _host_says(talk, ask)


async def _dropped(*tasks: asyncio.Future[Any]) -> None:
    """Take back questions that nobody needs answered any more."""
    for task in tasks:
        if not task.done():
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _hooks_say(talk: Conversation, tool: Tool, ask: Ask) -> Reply | None:
    verdict = await talk.fire(
        PermissionRequest, tool_name=ask.tool_name, tool_input=ask.input, permission_suggestions=list(ask.suggestions)
    )
    if verdict.decision is Decision.PASS and not verdict.stop:
        return None
    if verdict.decision is Decision.DENY and not verdict.reply.reasons:
        return verdict.reply | deny("Permission denied by hook")
    return _within_rules(talk, tool, verdict.reply)


def _within_rules(talk: Conversation, tool: Tool, reply: Reply) -> Reply | None:
    """Deny and ask rules hold for an input that hooks put in place of the one they were asked about."""
    if reply.decision is not Decision.ALLOW or reply.input is None:
        return reply
    permission = permission_of(talk, tool, reply.input)
    if permission.reason_type != "rule" or permission.behaviour == "allow":
        return reply
    return deny(permission.reason) if permission.behaviour == "deny" else None


async def _host_says(talk: Conversation, ask: Ask) -> Reply | None:
    """Ask whoever can be asked; one who takes long is waited for, and the user is notified."""
    can_use_tool = talk.session.policy.can_use_tool
    if can_use_tool is None:
        return None
    answer = asyncio.ensure_future(can_use_tool(ask))
    try:
        done, _ = await asyncio.wait({answer}, timeout=PATIENCE)
        if not done:
            message = f"Your permission is needed to use {ask.tool_name}"
            talk.remind_of_context(
                await talk.fire(Notification, message=message, notification_type="permission_prompt")
            )
        said = await answer
    finally:
        await _dropped(answer)
    if isinstance(said, Reply):
        return said
    return allow() if said else deny("The user did not permit this call.")


def _answered(talk: Conversation, tool: Tool, use: ToolUse, ask: Ask, reply: Reply | None) -> Permitted:
    """What an answer means; no answer is no."""
    if reply is not None and reply.decision is Decision.ALLOW and not reply.stop:
        if reply.specific is not None and reply.specific.updated_permissions:
            for problem in talk.session.policy.update(reply.specific.updated_permissions):
                talk.session.output.inform(problem, level="warning")
        return _with_input(tool, ask, reply)
    nobody = f"This call of {ask.tool_name} needs permission, and nobody gave it: {ask.reason}"
    why = (reply.reason if reply else "") or (ask.reason if ask.reason_type == "hook" else nobody)
    _note(talk, use, ask.input, why, ask.reason_type)
    ending = None
    if reply is not None and reply.specific is not None and reply.specific.interrupt:
        ending = Ending(reason="aborted_tools", subtype="error_during_execution", is_error=True, errors=(why,))
    elif reply is not None and reply.stop:
        ending = Ending(reason="hook_stopped", text="")
    return Permitted(why=why, ending=ending)


def _with_input(tool: Tool, ask: Ask, reply: Reply) -> Permitted:
    if reply.input is None:
        return Permitted(input=ask.input)
    try:
        return Permitted(input=tool.rewritten(reply.input))
    except ToolInputInvalid as problem:
        return Permitted(why=f"the input that was permitted for {tool.name} failed validation: {problem}")


def _note(talk: Conversation, use: ToolUse, given: dict[str, Any], why: str, reason_type: str) -> None:
    """Tell the user of a refusal, and keep it for the result."""
    row = {"tool_name": use.name, "tool_use_id": use.id}
    talk.session.denials.append({**row, "tool_input": given})
    talk.session.output.system("permission_denied", **row, decision_reason_type=reason_type, message=why)
