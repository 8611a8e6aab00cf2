"""One turn's tool calls: each is validated, judged, permitted, run and looked at again; all are answered together.

    validate → check → PreToolUse → permission → run → PostToolUse or PostToolUseFailure, and PostToolBatch after all

A call that does not get to its end is answered with why, because the model must hear of it.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from hookline.agent import hook_messages
from hookline.agent.authorization import PendingCall, authorize
from hookline.agent.messages import ToolUse, TurnEnd, User
from hookline.agent.session.lifecycle import load_nested
from hookline.agent.session.session import Conversation
from hookline.agent.tools import Tool, ToolEnv, ToolResult, failure
from hookline.core.engine import Verdict
from hookline.core.hooks.condition import ARGUMENTS
from hookline.core.paths import absolute
from hookline.errors import ToolInputInvalid
from hookline.events import PostToolBatch, PostToolUse, PostToolUseFailure, PreToolUse
from hookline.guards.sandboxing import HeldLine, by_agent
from hookline.replies import Decision


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
    verdict = await conversation.fire(PostToolBatch, tool_calls=rows)
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
        await _make(call, tool, held)
    finally:
        by_agent.reset(token)


async def _make(call: PendingCall, tool: Tool, held: HeldLine) -> None:
    env = call.conversation.hosted_env(call.use.id)
    given = await _valid(call, tool, env)
    if given is None:
        return
    verdict = await call.conversation.fire(PreToolUse, tool_name=tool.name, tool_input=given, tool_use_id=call.use.id)
    call.remind_of_context(verdict)
    given = _judged(call, tool, given, verdict)
    if given is None:
        return
    given = await authorize(call, tool, given, verdict)
    if given is not None:
        await _run(call, tool, given, replace(env, held=held.policy))


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
    name = hook_messages.hook_name(verdict.event)
    if verdict.stop:
        call.stop(verdict)
        why = f": {verdict.stop_reason}" if verdict.stop_reason else ""
        call.refuse(f"{name} hook stopped the turn{why}")
    if verdict.decision is Decision.DENY:
        call.refuse(f"{name} hook error: {hook_messages.reason_of(verdict)}")
    elif not verdict.stop and verdict.decision is Decision.DEFER:
        call.deferred = True
    if call.result is not None:
        row = {"tool_name": call.use.name, "tool_use_id": call.use.id, "tool_input": given}
        call.conversation.session.denials.append(row)
    if call.result is not None or call.deferred:
        return None
    if verdict.reply.input is None:
        return given
    try:
        return tool.rewritten(verdict.reply.input)
    except ToolInputInvalid as problem:
        call.refuse(f"PreToolUse hook for {tool.name} returned an input that failed validation: {problem}")
        return None


async def _run(call: PendingCall, tool: Tool, given: dict[str, Any], env: ToolEnv) -> None:
    """Run the tool, then let hooks look at what it came to."""
    started = time.perf_counter()
    try:
        result = await tool.run(given, env)
    except Exception as problem:  # noqa: BLE001 - a tool that breaks is told to the model, like one that fails
        result = failure(f"{tool.name} broke: {type(problem).__name__}: {problem}")
    about: dict[str, Any] = {"tool_name": tool.name, "tool_input": given, "tool_use_id": call.use.id}
    about["duration_ms"] = round((time.perf_counter() - started) * 1000)
    call.result = result
    if result.is_error:  # hooks may object and add context; they cannot end the turn (FACTS.md §3)
        error = result.content if isinstance(result.content, str) else str(result.response)
        call.heed(await call.conversation.fire(PostToolUseFailure, error=error, is_interrupt=False, **about))
        return
    if isinstance(given.get("file_path"), str):
        await load_nested(call.conversation, str(env.path(given["file_path"])))
    verdict = await call.conversation.fire(PostToolUse, tool_response=result.response, **about)
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
