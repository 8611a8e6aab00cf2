"""May this call run? Hooks, rules, the mode, PermissionRequest hooks, then the host (FACTS.md §3).

PreToolUse's answer and the rules → allowed, denied, or to be asked
asked: PermissionRequest hooks, all of them, then the host; without a host the answer is no
"""

import asyncio
from typing import Any

from msgspec import Struct

from hookline.agent.hook_messages import hook_name
from hookline.agent.messages import ToolUse, TurnEnd, fail_turn
from hookline.agent.session.session import Conversation, PermissionQuestion, as_asked
from hookline.agent.tools import Tool
from hookline.core.engine import Verdict
from hookline.core.engine.engine import ask_people
from hookline.errors import ToolInputInvalid
from hookline.events import Notification, PermissionDenied, PermissionRequest
from hookline.guards.off_loop import run_off_loop
from hookline.guards.permissions import Mode, Permission, suggestions
from hookline.replies import Decision, Reply, allow, deny

#: seconds without an answer after which the user is notified that a call waits
PATIENCE = 6.0


class Authorization(Struct, frozen=True, kw_only=True):
    """The input to run with, or none and why; `ending` if the answer ends the turn."""

    input: dict[str, Any] | None = None
    why: str = ""
    reminders: tuple[str, ...] = ()
    ending: TurnEnd | None = None


async def may_run(
    conversation: Conversation, tool: Tool, use: ToolUse, given: dict[str, Any], verdict: Verdict
) -> Authorization:
    """Whether a call that hooks let pass may run, and with which input."""
    line = str(given.get("command") or given.get("pattern") or "")
    permission = await run_off_loop([line], lambda: conversation.permission_of(tool, given, verdict), disk=True)
    if permission.behaviour == "allow":
        return Authorization(input=given)
    if permission.behaviour == "deny":
        return await _denied(conversation, tool, use, given, permission)
    by_hook = permission.reason_type == "hook"
    confirm = f"Hook {hook_name(verdict.event)} asked for confirmation for this tool"
    reason = verdict.reply.reason or confirm if by_hook else permission.reason
    ask = PermissionQuestion(
        tool_name=tool.name, input=given, tool_use_id=use.id, agent_id=conversation.agent_id,
        suggestions=suggestions(tool.name, as_asked(tool, given)), reason=reason, reason_type=permission.reason_type,
    )  # fmt: skip
    alone = by_hook and conversation.session.policy.can_use_tool is None  # FACTS.md §3: ask_then_permreq
    # All PermissionRequest hooks first, the strictest of them decides; only if none does is anyone else asked: a host
    # that says yes at once must not outrun a hook that says no, and where a hook says yes no prompt appears.
    reply = None if alone else await _hooks_say(conversation, tool, ask) or await _host_says(conversation, ask)
    if alone:
        said = await ask_people(conversation.session.hooks, verdict)
        reply = said if isinstance(said, Reply) else None
    return _answered(conversation, tool, use, ask, reply)


async def _denied(
    conversation: Conversation, tool: Tool, use: ToolUse, given: dict[str, Any], permission: Permission
) -> Authorization:
    """A rule or the mode says no; PermissionDenied is for the mode's own refusals, as in Claude Code."""
    command = as_asked(tool, given).get("command") if permission.reason_type == "rule" else None
    what = f"{tool.name} with `{command}`" if isinstance(command, str) else tool.name
    why = f"Permission to use {what} was denied: {permission.reason}"
    _note(conversation, use, given, why, permission.reason_type)
    if permission.reason_type != "mode" or conversation.session.policy.mode is Mode.DONT_ASK:
        return Authorization(why=why)
    verdict = await conversation.fire(
        PermissionDenied, tool_name=tool.name, tool_input=given, tool_use_id=use.id, reason=permission.reason
    )
    retry = verdict.reply.specific is not None and verdict.reply.specific.retry
    told = ("The PermissionDenied hook indicated you may retry this tool call.",) if retry else ()
    return Authorization(why=why, reminders=told)


async def _hooks_say(conversation: Conversation, tool: Tool, ask: PermissionQuestion) -> Reply | None:
    verdict = await conversation.fire(
        PermissionRequest, tool_name=ask.tool_name, tool_input=ask.input, tool_use_id=ask.tool_use_id,
        permission_suggestions=list(ask.suggestions),
    )  # fmt: skip
    if verdict.decision is Decision.PASS and not verdict.stop:
        return None
    if verdict.decision is Decision.DENY and not verdict.reply.reasons:
        return verdict.reply | deny("Permission denied by hook")
    reply = verdict.reply
    if reply.decision is not Decision.ALLOW or reply.input is None:
        return reply
    # deny and ask rules hold for an input that hooks put in place of the one they were asked about
    permission = conversation.permission_of(tool, reply.input)
    if permission.reason_type != "rule" or permission.behaviour == "allow":
        return reply
    return deny(permission.reason) if permission.behaviour == "deny" else None


async def _host_says(conversation: Conversation, ask: PermissionQuestion) -> Reply | None:
    """Ask the host; one that takes long is waited for, and the user is notified."""
    can_use_tool = conversation.session.policy.can_use_tool
    if can_use_tool is None:
        return None
    answer = asyncio.ensure_future(can_use_tool(ask))
    try:
        done, _ = await asyncio.wait({answer}, timeout=PATIENCE)
        if not done:
            message = f"Your permission is needed to use {ask.tool_name}"
            conversation.remind_of_context(
                await conversation.fire(Notification, message=message, notification_type="permission_prompt")
            )
        said = await answer
    finally:
        answer.cancel()  # a question that needs no answer any more
        await asyncio.gather(answer, return_exceptions=True)
    if isinstance(said, Reply):
        return said
    return allow() if said else deny("The user did not permit this call.")


def _answered(
    conversation: Conversation, tool: Tool, use: ToolUse, ask: PermissionQuestion, reply: Reply | None
) -> Authorization:
    """What an answer means; no answer is no."""
    if reply is not None and reply.decision is Decision.ALLOW and not reply.stop:
        if reply.specific is not None and reply.specific.updated_permissions:
            for problem in conversation.session.policy.update(reply.specific.updated_permissions):
                conversation.session.output.inform(problem, level="warning")
        try:
            return Authorization(input=ask.input if reply.input is None else tool.rewritten(reply.input))
        except ToolInputInvalid as problem:
            return Authorization(why=f"the input that was permitted for {tool.name} failed validation: {problem}")
    ungiven = f"This call of {ask.tool_name} needs permission, which was not given: {ask.reason}"
    why = (reply.reason if reply else "") or (ask.reason if ask.reason_type == "hook" else ungiven)
    _note(conversation, use, ask.input, why, ask.reason_type)
    ending = None
    if reply is not None and reply.specific is not None and reply.specific.interrupt:
        ending = fail_turn("aborted_tools", why)
    elif reply is not None and reply.stop:
        ending = TurnEnd(reason="hook_stopped", text="")
    return Authorization(why=why, ending=ending)


def _note(conversation: Conversation, use: ToolUse, given: dict[str, Any], why: str, reason_type: str) -> None:
    row = {"tool_name": use.name, "tool_use_id": use.id}
    conversation.session.denials.append({**row, "tool_input": given})
    conversation.session.output.system("permission_denied", **row, decision_reason_type=reason_type, message=why)
