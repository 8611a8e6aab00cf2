"""May this call run? Hooks, rules, the mode, PermissionRequest hooks, then the host (FACTS.md §3).

PreToolUse's answer and the rules → allowed, denied, or to be asked
asked: PermissionRequest hooks, all of them, then the host; without a host the answer is no
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hookline.agent import hook_messages
from hookline.agent.hook_messages import hook_name
from hookline.agent.messages import ToolOutput, ToolUse, TurnEnd, fail_turn
from hookline.agent.session.session import Conversation, PermissionQuestion, as_asked
from hookline.agent.tools import Tool, ToolResult, failure
from hookline.core.engine import Verdict
from hookline.core.engine.engine import ask_people
from hookline.core.hooks.condition import ALIASES
from hookline.errors import ToolInputInvalid
from hookline.events import Notification, PermissionDenied, PermissionRequest
from hookline.guards.off_loop import run_off_loop
from hookline.guards.permissions import Mode, Permission, suggestions
from hookline.replies import Decision, Reply, allow, deny

PATIENCE = 6.0  # seconds without an answer after which the user is notified that a call waits


@dataclass
class PendingCall:
    """One tool call on its way: what it came to, what the model is told besides, and whether it ends the turn."""

    conversation: Conversation
    use: ToolUse
    result: ToolResult | None = None
    reminders: list[str] = field(default_factory=list)
    ending: TurnEnd | None = None
    deferred: bool = False

    @property
    def output(self) -> ToolOutput:
        result = self.result or failure(hook_messages.INTERRUPTED)
        return ToolOutput(self.use.id, result.content, result.is_error)

    @property
    def tool(self) -> Tool | None:
        """The tool it is about, also by its other name."""
        tools, name = self.conversation.tool_set, self.use.name
        return tools.get(name) or tools.get(ALIASES.get(name, ""))

    def refuse(self, text: str) -> None:
        """Answer with why the call was not made."""
        self.result = failure(text)

    def remind_of_context(self, verdict: Verdict) -> None:
        """Tell the model, after the result, what hooks want it to know."""
        self.reminders.append(self.conversation.context_of(verdict))

    def heed(self, verdict: Verdict) -> None:
        """Tell the model, after the result, what hooks object to and what they want it to know."""
        if verdict.decision is Decision.DENY:
            self.reminders.append(hook_messages.objection(verdict))
        self.remind_of_context(verdict)

    def stop(self, verdict: Verdict) -> None:
        """A hook ends the turn once the calls are answered; the model hears of it in its next turn."""
        self.ending = TurnEnd(reason="hook_stopped", text="")
        self.reminders.append(hook_messages.reminder_of_stop(verdict))


async def authorize(call: PendingCall, tool: Tool, given: dict[str, Any], verdict: Verdict) -> dict[str, Any] | None:
    """The input with which a call that hooks let pass may run; if it may not, the call is answered with why."""
    conversation = call.conversation
    line = str(given.get("command") or given.get("pattern") or "")
    permission = await run_off_loop([line], lambda: conversation.permission_of(tool, given, verdict), disk=True)
    if permission.behaviour == "allow":
        return given
    if permission.behaviour == "deny":
        await _deny(call, tool, given, permission)
        return None
    by_hook = permission.reason_type == "hook"
    confirm = f"Hook {hook_name(verdict.event)} asked for confirmation for this tool"
    ask = PermissionQuestion(
        tool_name=tool.name, input=given, tool_use_id=call.use.id, agent_id=conversation.agent_id,
        suggestions=suggestions(tool.name, as_asked(tool, given)), reason_type=permission.reason_type,
        reason=verdict.reply.reason or confirm if by_hook else permission.reason,
    )  # fmt: skip
    if by_hook and conversation.session.policy.can_use_tool is None:  # FACTS.md §3: ask_then_permreq
        said = await ask_people(conversation.session.hooks, verdict)
        return _answer(call, tool, ask, said if isinstance(said, Reply) else None)
    # All PermissionRequest hooks first, the strictest of them decides; only if none does is anyone else asked: a host
    # that says yes at once must not outrun a hook that says no, and where a hook says yes no prompt appears.
    return _answer(call, tool, ask, await _hooks_say(conversation, tool, ask) or await _host_says(conversation, ask))


async def _deny(call: PendingCall, tool: Tool, given: dict[str, Any], permission: Permission) -> None:
    """A rule or the mode says no; PermissionDenied is for the mode's own refusals, as in Claude Code."""
    command = as_asked(tool, given).get("command") if permission.reason_type == "rule" else None
    what = f"{tool.name} with `{command}`" if isinstance(command, str) else tool.name
    _refuse(call, given, f"Permission to use {what} was denied: {permission.reason}", permission.reason_type)
    if permission.reason_type != "mode" or call.conversation.session.policy.mode is Mode.DONT_ASK:
        return
    verdict = await call.conversation.fire(
        PermissionDenied, tool_name=tool.name, tool_input=given, tool_use_id=call.use.id, reason=permission.reason
    )
    if verdict.reply.specific is not None and verdict.reply.specific.retry:
        call.reminders.append("The PermissionDenied hook indicated you may retry this tool call.")


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


def _answer(call: PendingCall, tool: Tool, ask: PermissionQuestion, reply: Reply | None) -> dict[str, Any] | None:
    """What an answer means; no answer is no."""
    session = call.conversation.session
    more = reply.specific if reply is not None else None
    if reply is not None and reply.decision is Decision.ALLOW and not reply.stop:
        for problem in session.policy.update(more.updated_permissions) if more and more.updated_permissions else ():
            session.output.inform(problem, level="warning")
        try:
            return ask.input if reply.input is None else tool.rewritten(reply.input)
        except ToolInputInvalid as problem:
            call.refuse(f"the input that was permitted for {tool.name} failed validation: {problem}")
            return None
    ungiven = f"This call of {ask.tool_name} needs permission, which was not given: {ask.reason}"
    why = (reply.reason if reply else "") or (ask.reason if ask.reason_type == "hook" else ungiven)
    _refuse(call, ask.input, why, ask.reason_type)
    if more is not None and more.interrupt:
        call.ending = fail_turn("aborted_tools", why)
    elif reply is not None and reply.stop:
        call.ending = TurnEnd(reason="hook_stopped", text="")
    return None


def _refuse(call: PendingCall, given: dict[str, Any], why: str, reason_type: str) -> None:
    call.refuse(why)
    row = {"tool_name": call.use.name, "tool_use_id": call.use.id}
    call.conversation.session.denials.append({**row, "tool_input": given})
    call.conversation.session.output.system("permission_denied", **row, decision_reason_type=reason_type, message=why)
