"""One turn's tool calls: each is validated, judged, permitted, run and looked at again; all are answered together.

    validate → check → PreToolUse → permission → run → PostToolUse or PostToolUseFailure, and PostToolBatch after all

A call that does not get to its end is answered with why, because the model must hear of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from hookline.agent import hook_messages
from hookline.agent.authorization import may_run
from hookline.agent.messages import ToolOutput, ToolUse, User
from hookline.agent.session.lifecycle import load_nested
from hookline.agent.session.results import TurnEnd
from hookline.agent.session.session import Conversation
from hookline.agent.tool_host import build_tool_env
from hookline.agent.tools import Tool, ToolEnv, ToolResult, failure
from hookline.core.engine import Verdict
from hookline.core.hooks.tools import ALIASES, ARGUMENTS
from hookline.core.paths import absolute
from hookline.errors import ToolInputInvalid
from hookline.events import PostToolBatch, PostToolUse, PostToolUseFailure, PreToolUse
from hookline.guards.sandboxing import HeldLine, by_agent
from hookline.replies import Decision


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
        """The answer to the model."""
        result = self.result or failure(hook_messages.INTERRUPTED)
        return ToolOutput(self.use.id, result.content, result.is_error)

    def refuse(self, text: str) -> None:
        """Answer with why the call was not made."""
        self.result = failure(text)

    def remind_of_context(self, verdict: Verdict) -> None:
        """Tell the model, after the result, what hooks want it to know."""
        if verdict.context:
            texts = [self.conversation.bounded(text) for text in verdict.context]
            self.reminders.append(hook_messages.additional_context(verdict.event, texts))

    def heed(self, verdict: Verdict) -> None:
        """Tell the model, after the result, what hooks object to and what they want it to know."""
        if verdict.decision is Decision.DENY:
            self.reminders.append(hook_messages.objection(verdict))
        self.remind_of_context(verdict)

    def stop(self, verdict: Verdict) -> None:
        """A hook ends the turn once the calls are answered; the model hears of it in its next turn."""
        self.ending = TurnEnd(reason="hook_stopped", text="")
        self.reminders.append(hook_messages.reminder_of_stop(verdict))


async def call_tools(conversation: Conversation, uses: Sequence[ToolUse]) -> TurnEnd | None:
    """Make the calls of one answer and put their results into the conversation; an ending if the turn is over."""
    calls = [PendingCall(conversation, use) for use in uses]
    for group in _groups(calls):
        await _together(group)
        if any(call.ending and call.ending.is_error for call in group):
            break  # interrupted: the rest is answered as not made
    deferred = [call for call in calls if call.deferred]
    if deferred:
        return _defer(conversation, deferred[-1].use)
    _answer(conversation, calls)
    ending = next((call.ending for call in calls if call.ending), None)
    if ending is not None and ending.is_error:
        return ending
    ending = await _after_all(conversation, calls) or ending
    if ending is not None:
        conversation.deliver()  # no request follows in this run; the run that goes on later reads it
    return ending


def _groups(calls: Sequence[PendingCall]) -> Iterator[list[PendingCall]]:
    """Neighbouring calls that are safe together run at once, the others one by one."""
    for safe, group in groupby(calls, _is_safe):
        together = list(group)
        yield from [together] if safe else [[call] for call in together]


def _is_safe(call: PendingCall) -> bool:
    tool = _tool_of(call)
    return tool is not None and (tool.concurrency_safe or tool.is_read_only(call.use.input))


def _tool_of(call: PendingCall) -> Tool | None:
    name = call.use.name
    return call.conversation.tool_set.get(name) or call.conversation.tool_set.get(ALIASES.get(name, ""))


async def _together(group: list[PendingCall]) -> None:
    if len(group) == 1:
        await make(group[0])
        return
    async with asyncio.TaskGroup() as tasks:
        for call in group:
            tasks.create_task(make(call))


def _answer(conversation: Conversation, calls: Sequence[PendingCall]) -> None:
    outputs = [call.output for call in calls]
    conversation.add(User(tuple(outputs)))
    responses = [call.result.response if call.result else None for call in calls]
    conversation.session.output.results(outputs, responses, conversation.parent_tool_use_id)
    for call in calls:
        conversation.remind(*call.reminders)


def _defer(conversation: Conversation, use: ToolUse) -> TurnEnd:
    """End the run here; the run that resumes it makes the calls."""
    if conversation.transcript is not None:
        conversation.transcript.append({"type": "system", "subtype": "tool_deferred", "toolUseID": use.id})
    return TurnEnd(reason="tool_deferred", stop_reason="tool_deferred", deferred=use, text="")


async def _after_all(conversation: Conversation, calls: Sequence[PendingCall]) -> TurnEnd | None:
    """PostToolBatch: context for the model; a block or a stop ends the turn."""
    rows = [
        {
            "tool_name": call.use.name,
            "tool_input": call.use.input,
            "tool_use_id": call.use.id,
            "tool_response": call.output.content,
        }
        for call in calls
    ]
    verdict = await conversation.fire(PostToolBatch, tool_calls=rows)
    conversation.remind_of_context(verdict)
    if verdict.decision is not Decision.DENY and not verdict.stop:
        return None
    conversation.remind(
        hook_messages.objection(verdict)
        if verdict.decision is Decision.DENY
        else hook_messages.reminder_of_stop(verdict)
    )
    return TurnEnd(reason="hook_stopped", text="")


# -- one call ----------------------------------------------------------------------------------------------------


async def make(call: PendingCall) -> None:
    """Make one call, from the model's words to its result; guards have its shell line confined unless told not to."""
    held = HeldLine()
    token = by_agent.set(held if call.conversation.session.confine is not False else False)
    try:
        await _make(call, held)
    finally:
        by_agent.reset(token)


async def _make(call: PendingCall, held: HeldLine) -> None:
    tool = _tool_of(call)
    if tool is None:
        call.refuse(f"<tool_use_error>Error: No such tool available: {call.use.name}</tool_use_error>")
        return
    env = build_tool_env(call.conversation, call.use.id)
    given = await _valid(call, tool, env)
    if given is None:
        return
    verdict = await call.conversation.fire(PreToolUse, tool_name=tool.name, tool_input=given, tool_use_id=call.use.id)
    call.remind_of_context(verdict)
    given = _judged(call, tool, given, verdict)
    if given is None:
        return
    permitted = await may_run(call.conversation, tool, call.use, given, verdict)
    if permitted.input is None:
        call.refuse(permitted.why)
        call.reminders += permitted.reminders
        call.ending = permitted.ending
        return
    await _run(call, tool, permitted.input, replace(env, held=held.policy))


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
    if verdict.stop:
        call.stop(verdict)
        call.refuse(
            hook_messages.refused(verdict) if verdict.decision is Decision.DENY else hook_messages.stopped(verdict)
        )
    elif verdict.decision is Decision.DENY:
        call.refuse(hook_messages.refused(verdict))
    elif verdict.decision is Decision.DEFER:
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
    about = {
        "tool_name": tool.name,
        "tool_input": given,
        "tool_use_id": call.use.id,
        "duration_ms": round((time.perf_counter() - started) * 1000),
    }
    call.result = result
    if not result.is_error and isinstance(given.get("file_path"), str):
        await load_nested(call.conversation, str(env.path(given["file_path"])))
    await (_after_failure if result.is_error else _after_success)(call, tool, about)


async def _after_success(call: PendingCall, tool: Tool, about: dict[str, Any]) -> None:
    """PostToolUse: may replace the output, object, add context, end the turn."""
    assert call.result is not None
    verdict = await call.conversation.fire(PostToolUse, tool_response=call.result.response, **about)
    call.result = replaced(tool, call.result, verdict)
    call.heed(verdict)
    if verdict.stop:
        call.stop(verdict)


async def _after_failure(call: PendingCall, tool: Tool, about: dict[str, Any]) -> None:
    """PostToolUseFailure: may object and add context; it cannot end the turn (FACTS.md §3)."""
    assert call.result is not None
    content = call.result.content
    error = content if isinstance(content, str) else str(call.result.response)
    verdict = await call.conversation.fire(PostToolUseFailure, error=error, is_interrupt=False, **about)
    call.heed(verdict)


# -- what a PostToolUse hook puts in place of a tool's output -----------------------------------------------------


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
    content = _mcp_content(output) if mcp else _content(output)
    return result if content is None else ToolResult(content, output, result.is_error)


def _mcp_content(output: Any) -> str | list[dict[str, Any]] | None:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(isinstance(block, dict) and "type" in block for block in output):
        return output
    return msgspec.json.encode(output).decode()


def _content(output: Any) -> str | None:
    if isinstance(output, str):
        return output
    if not isinstance(output, dict):
        return None
    return next((words for shape in SHAPES if (words := shape(output)) is not None), None)


def _command_output(output: dict[str, Any]) -> str | None:
    """Bash's own shape."""
    if not isinstance(output.get("stdout"), str):
        return None
    return "\n".join(part for part in (output["stdout"], str(output.get("stderr") or "")) if part)


def _file(output: dict[str, Any]) -> str | None:
    """Read's own shape."""
    file = output.get("file")
    return str(file["content"]) if isinstance(file, dict) and "content" in file else None


def _file_written(output: dict[str, Any]) -> str | None:
    """Write's and Edit's own shape."""
    return f"The file {output['filePath']} has been updated." if isinstance(output.get("filePath"), str) else None


def _list(output: dict[str, Any]) -> str | None:
    """Glob's and Grep's own shape."""
    names = output.get("filenames")
    return "\n".join(map(str, names)) if isinstance(names, list) else None


SHAPES = (_command_output, _file, _file_written, _list)
