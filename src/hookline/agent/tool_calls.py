"""One turn's tool calls: each is validated, judged, permitted, run and looked at again; all are answered together.

    validate → check → PreToolUse → permission → run → PostToolUse or PostToolUseFailure, and PostToolBatch after all

A call that does not get to its end is answered with why, because the model must hear of it.

May it run (FACTS.md §3)? PreToolUse's answer, the rules and the mode allow it, deny it, or want it asked: then all
PermissionRequest hooks are asked, then the host; without a host the answer is no.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from hookline import events
from hookline.agent import hook_messages
from hookline.agent.hook_messages import hook_name
from hookline.agent.messages import ToolOutput, ToolUse, TurnEnd, User, fail_turn
from hookline.agent.session.lifecycle import announce, nested
from hookline.agent.session.session import Conversation, PermissionQuestion, as_asked
from hookline.agent.tools import Tool, ToolEnv, ToolResult, failure
from hookline.core.engine import Verdict
from hookline.core.engine.engine import ask_people
from hookline.core.hooks.condition import ALIASES, ARGUMENTS
from hookline.core.paths import absolute
from hookline.errors import ToolInputInvalid
from hookline.guards.off_loop import run_off_loop
from hookline.guards.permissions import Mode, Permission, suggestions
from hookline.guards.sandboxing import HeldLine, by_agent
from hookline.processes.loop import running
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
        tools, name = self.conversation.tool_set, self.use.name
        return tools.get(name) or tools.get(ALIASES.get(name, ""))

    async def fire(self, kind: type[events.Event], tool: Tool, given: dict[str, Any], **more: Any) -> Verdict:
        """Send an event about the call through the hooks."""
        about = {"tool_name": tool.name, "tool_input": given, "tool_use_id": self.use.id}
        return await self.conversation.fire(kind, **about, **more)

    def refuse(self, why: str) -> None:
        self.result = failure(why)

    def deny(self, given: dict[str, Any], why: str, reason_type: str = "") -> None:
        """Refuse, and list the call among the denials; with a `reason_type` the host is told, too."""
        self.refuse(why)
        session, row = self.conversation.session, {"tool_name": self.use.name, "tool_use_id": self.use.id}
        session.denials.append({**row, "tool_input": given})
        if reason_type:
            session.output.system("permission_denied", **row, decision_reason_type=reason_type, message=why)

    def heed(self, verdict: Verdict) -> None:
        """Tell the model, after the result, what hooks object to and what they want it to know."""
        if verdict.decision is Decision.DENY:
            self.reminders.append(hook_messages.objection(verdict))
        self.reminders.append(self.conversation.context_of(verdict))

    def stop(self, verdict: Verdict) -> None:
        """A hook ends the turn once the calls are answered; the model hears of it in its next turn."""
        self.ending = TurnEnd(reason="hook_stopped", text="")
        self.reminders.append(hook_messages.reminder_of_stop(verdict))


async def call_tools(conversation: Conversation, uses: Sequence[ToolUse]) -> TurnEnd | None:
    """Make the calls of one answer and put their results into the conversation; an ending if the turn is over."""
    calls = [PendingCall(conversation, use) for use in uses]
    for group in _groups(calls):
        if len(group) == 1:
            await make(group[0])
        else:
            async with asyncio.TaskGroup() as tasks:
                for call in group:
                    tasks.create_task(make(call))
        if any(call.ending and call.ending.is_error for call in group):
            break  # interrupted: the rest is answered as not made
    deferred = [call.use for call in calls if call.deferred]
    if deferred:  # the run ends here; the one that resumes it makes the calls
        if conversation.transcript is not None:
            mark = {"type": "system", "subtype": "tool_deferred", "toolUseID": deferred[-1].id}
            conversation.transcript.append(mark)
        return TurnEnd(reason="tool_deferred", stop_reason="tool_deferred", deferred=deferred[-1], text="")
    outputs = [call.output for call in calls]
    conversation.add(User(tuple(outputs)))
    for call, output in zip(calls, outputs, strict=True):
        response = call.result.response if call.result else None
        parent = conversation.parent_tool_use_id
        conversation.session.output.user(User((output,)), parent, tool_use_result=response)
        conversation.remind(*call.reminders)
    ending = next((call.ending for call in calls if call.ending), None)
    if ending is not None and ending.is_error:
        return ending
    ending = await _after_all(conversation, calls) or ending
    if ending is not None:
        conversation.deliver()  # no request follows in this run; the run that goes on later reads it
    return ending


def _groups(calls: Sequence[PendingCall]) -> Iterator[list[PendingCall]]:
    """Neighbouring calls that are safe together run at once, the others one by one."""
    for safe, group in groupby(calls, lambda call: call.tool and (call.tool.concurrency_safe or call.tool.read_only)):
        together = list(group)
        yield from [together] if safe else [[call] for call in together]


async def _after_all(conversation: Conversation, calls: Sequence[PendingCall]) -> TurnEnd | None:
    """PostToolBatch: context for the model; a block or a stop ends the turn."""
    rows = [
        {"tool_name": use.name, "tool_input": use.input, "tool_use_id": use.id, "tool_response": call.output.content}
        for call, use in ((call, call.use) for call in calls)
    ]
    verdict = await conversation.fire(events.PostToolBatch, tool_calls=rows)
    conversation.remind_of_context(verdict)
    if verdict.decision is not Decision.DENY and not verdict.stop:
        return None
    denied = verdict.decision is Decision.DENY
    conversation.remind(hook_messages.objection(verdict) if denied else hook_messages.reminder_of_stop(verdict))
    return TurnEnd(reason="hook_stopped", text="")


async def make(call: PendingCall) -> None:
    """Make one call, from the model's words to its result; guards have its shell line confined unless told not to."""
    tool, held = call.tool, HeldLine()
    if tool is None:
        call.refuse(f"<tool_use_error>Error: No such tool available: {call.use.name}</tool_use_error>")
        return
    token = by_agent.set(held if call.conversation.session.config.confine is not False else False)
    try:
        env = call.conversation.hosted_env(call.use.id)
        given = await permitted(call, tool, env)
        if given is not None:
            await _run(call, tool, given, replace(env, held=held.policy))
    finally:
        by_agent.reset(token)


async def permitted(call: PendingCall, tool: Tool, env: ToolEnv) -> dict[str, Any] | None:
    """The input with which the call may run; if it may not, the call is answered with why."""
    given = await _valid(call, tool, env)
    if given is None:
        return None
    verdict = await call.fire(events.PreToolUse, tool, given)
    call.reminders.append(call.conversation.context_of(verdict))
    given = _judged(call, tool, given, verdict)
    return None if given is None else await _authorized(call, tool, given, verdict)


async def _valid(call: PendingCall, tool: Tool, env: ToolEnv) -> dict[str, Any] | None:
    """The input with defaults filled in, if it makes sense and the call could work; hooks never see others."""
    try:
        given = tool.validate(call.use.malformed or call.use.input)
    except ToolInputInvalid as problem:
        call.refuse(f"<tool_use_error>InputValidationError: {problem}</tool_use_error>")
        return None
    about = ARGUMENTS.get(tool.name)
    if about is not None and about.kind == "path":  # hooks and rules judge the file itself, not a way to it
        given[about.name] = absolute(given[about.name], str(env.cwd), str(Path.home()))
    why_not = await tool.check(given, env)
    if why_not is not None:
        call.refuse(f"<tool_use_error>{why_not}</tool_use_error>")
        return None
    return given


def _judged(call: PendingCall, tool: Tool, given: dict[str, Any], verdict: Verdict) -> dict[str, Any] | None:
    """What PreToolUse hooks leave of a call: the input to go on with, or nothing, and the call is answered."""
    name = hook_name(verdict.event)
    if verdict.stop:
        call.stop(verdict)
    if verdict.decision is Decision.DENY or verdict.stop:
        stopped = f"{name} hook stopped the turn: {verdict.stop_reason or ''}".removesuffix(": ")
        denied = f"{name} hook error: {hook_messages.reason_of(verdict)}"
        call.deny(given, denied if verdict.decision is Decision.DENY else stopped)
        return None
    if verdict.decision is Decision.DEFER:
        call.deferred = True
        return None
    if verdict.reply.input is None:
        return given
    try:
        return tool.rewritten(verdict.reply.input)
    except ToolInputInvalid as problem:
        call.refuse(f"PreToolUse hook for {tool.name} returned an input that failed validation: {problem}")
        return None


async def _authorized(call: PendingCall, tool: Tool, given: dict[str, Any], verdict: Verdict) -> dict[str, Any] | None:
    """The input with which a call that hooks let pass may run; if it may not, the call is answered with why."""
    conversation = call.conversation
    line = str(given.get("command") or given.get("pattern") or "")
    permission = await run_off_loop([line], lambda: conversation.permission_of(tool, given, verdict), disk=True)
    if permission.behaviour == "allow":
        return given
    if permission.behaviour == "deny":
        await _denied(call, tool, given, permission)
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
    return _answer(call, tool, ask, await _hooks_say(call, tool, ask) or await _host_says(conversation, ask))


async def _denied(call: PendingCall, tool: Tool, given: dict[str, Any], permission: Permission) -> None:
    """A rule or the mode says no; PermissionDenied is for the mode's own refusals, as in Claude Code."""
    command = as_asked(tool, given).get("command") if permission.reason_type == "rule" else None
    what = f"{tool.name} with `{command}`" if isinstance(command, str) else tool.name
    call.deny(given, f"Permission to use {what} was denied: {permission.reason}", permission.reason_type)
    if permission.reason_type != "mode" or call.conversation.session.policy.mode is Mode.DONT_ASK:
        return
    verdict = await call.fire(events.PermissionDenied, tool, given, reason=permission.reason)
    if verdict.reply.specific is not None and verdict.reply.specific.retry:
        call.reminders.append("The PermissionDenied hook indicated you may retry this tool call.")


async def _hooks_say(call: PendingCall, tool: Tool, ask: PermissionQuestion) -> Reply | None:
    suggested = list(ask.suggestions)
    verdict = await call.fire(events.PermissionRequest, tool, ask.input, permission_suggestions=suggested)
    if verdict.decision is Decision.PASS and not verdict.stop:
        return None
    if verdict.decision is Decision.DENY and not verdict.reply.reasons:
        return verdict.reply | deny("Permission denied by hook")
    reply = verdict.reply
    if reply.decision is not Decision.ALLOW or reply.input is None:
        return reply
    # deny and ask rules hold for an input that hooks put in place of the one they were asked about
    permission = call.conversation.permission_of(tool, reply.input)
    if permission.reason_type != "rule" or permission.behaviour == "allow":
        return reply
    return deny(permission.reason) if permission.behaviour == "deny" else None


async def _host_says(conversation: Conversation, ask: PermissionQuestion) -> Reply | None:
    """Ask the host; one that takes long is waited for, and the user is notified."""
    can_use_tool = conversation.session.policy.can_use_tool
    if can_use_tool is None:
        return None
    async with running(can_use_tool(ask)) as answer:
        done, _ = await asyncio.wait({answer}, timeout=PATIENCE)
        if not done:
            await conversation.notify(f"Your permission is needed to use {ask.tool_name}", "permission_prompt")
        said = await answer
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
    call.deny(ask.input, why, ask.reason_type)
    if more is not None and more.interrupt:
        call.ending = fail_turn("aborted_tools", why)
    elif reply is not None and reply.stop:
        call.ending = TurnEnd(reason="hook_stopped", text="")
    return None


async def _run(call: PendingCall, tool: Tool, given: dict[str, Any], env: ToolEnv) -> None:
    """Run the tool, then let hooks look at what it came to."""
    started = time.perf_counter()
    try:
        result = await tool.run(given, env)
    except Exception as problem:  # noqa: BLE001 - a tool that breaks is told to the model, like one that fails
        result = failure(f"{tool.name} broke: {type(problem).__name__}: {problem}")
    took = round((time.perf_counter() - started) * 1000)
    call.result = result
    if result.is_error:  # hooks may object and add context; they cannot end the turn (FACTS.md §3)
        error = result.content if isinstance(result.content, str) else str(result.response)
        about = {"error": error, "is_interrupt": False, "duration_ms": took}
        call.heed(await call.fire(events.PostToolUseFailure, tool, given, **about))
        return
    if isinstance(given.get("file_path"), str):
        talk, path = call.conversation, str(env.path(given["file_path"]))
        await announce(talk, nested(path, talk.session.project_dir, talk.instructions_seen))
    verdict = await call.fire(events.PostToolUse, tool, given, tool_response=result.response, duration_ms=took)
    call.result = replaced(tool, result, verdict)
    call.heed(verdict)
    if verdict.stop:
        call.stop(verdict)


def replaced(tool: Tool, result: ToolResult, verdict: Verdict) -> ToolResult:
    """The result as hooks left it: their output if it fits the tool, else the tool's own.

    Text fits every tool. Blocks fit MCP tools, and any object does, as JSON; another tool takes objects of the shape it
    answers itself (FACTS.md §3).
    """
    mcp = tool.name.startswith("mcp__")
    output = verdict.reply.output
    if output is msgspec.UNSET and mcp and verdict.reply.specific is not None:
        output = verdict.reply.specific.mcp_output
    if output is msgspec.UNSET:
        return result
    content = output if isinstance(output, str) else _mcp_content(output) if mcp else _content(output)
    return result if content is None else ToolResult(content, output, result.is_error)


def _mcp_content(output: Any) -> str | list[dict[str, Any]]:
    if isinstance(output, list) and all(isinstance(block, dict) and "type" in block for block in output):
        return output
    return msgspec.json.encode(output).decode()


def _content(output: Any) -> str | None:
    """The words of an object of one of the shapes that our tools answer with."""
    if not isinstance(output, dict):
        return None
    file, names = output.get("file"), output.get("filenames")
    if isinstance(output.get("stdout"), str):  # Bash
        return "\n".join(part for part in (output["stdout"], str(output.get("stderr") or "")) if part)
    if isinstance(file, dict) and "content" in file:  # Read
        return str(file["content"])
    if isinstance(output.get("filePath"), str):  # Write, Edit
        return f"The file {output['filePath']} has been updated."
    return "\n".join(map(str, names)) if isinstance(names, list) else None  # Glob, Grep
