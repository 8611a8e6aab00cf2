"""Hookline inside Google's Agent Development Kit: `Runner(agent=…, plugins=[HooklinePlugin(hooks)], …)`."""

import asyncio
import logging
import sys
from functools import partial
from typing import Any

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, HookClient, PendingCalls

require("google-adk")

from google.adk.models import LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

log: logging.Logger = logging.getLogger("hookline.adapters")
_FEEDBACK = "feedback of a hook, which keeps the agent going: "
_CONTEXT = "hook_context"


class HooklinePlugin(BasePlugin):
    """Sends prompts, tool calls and endings of a runner's agents through `hooks`.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    The session is ADK's own. Where the plugin stands among others does not matter: it hears of prompts and results
    first, and judges a call last. Callbacks that an agent declares for itself run after those of plugins: what they
    change is not judged again.
    """

    def __init__(self, hooks: Fires, *, on_ask: OnAsk | None = None, name: str = "hookline") -> None:
        super().__init__(name=name)
        self._asking = HookClient(hooks, on_ask)
        self._runs: dict[str, AgentRun] = {}  # of the first agents, by invocation
        self._calls = PendingCalls()  # by their context, which all callbacks of a call share
        self._last = BasePlugin(name=f"{name}_last")  # stands behind all others: it sees what they made of a call
        self._last.before_tool_callback = self._judge_call

    def _first_run(self, context: Any) -> AgentRun:
        """The first run of the invocation a context belongs to; one that resumes begins without a message."""
        run = self._runs.get(context.invocation_id)
        if run is None:
            run = self._runs[context.invocation_id] = self._asking.new_run(session_id=context.session.id)
            task = asyncio.current_task()
            if task is not None:  # ADK tells plugins nothing of a run that is cancelled
                task.add_done_callback(partial(self._left, context.invocation_id))
        return run

    def _run_of(self, context: Any) -> AgentRun:
        return steps.run_of(self._first_run(context), context.agent_name)

    def _left(self, invocation_id: str, task: asyncio.Task[Any]) -> None:
        """The task of an invocation is over; what has not ended by then was cancelled."""
        run = self._pop(invocation_id)
        if run is not None:
            run.end_now(asyncio.CancelledError() if task.cancelled() else task.exception())

    def _pop(self, invocation_id: str) -> AgentRun | None:
        run = self._runs.pop(invocation_id, None)
        if run is not None:
            self._calls.forget([run, *run.agents.values()])
        return run

    def _take_places(self, plugins: list[BasePlugin]) -> None:
        """First of all plugins, since one that answers keeps the others from hearing, and last before a tool runs."""
        if self._last not in plugins:
            plugins.append(self._last)
            plugins.remove(self)
            plugins.insert(0, self)

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: types.Content) -> Any:
        self._take_places(invocation_context.plugin_manager.plugins)
        run = self._first_run(invocation_context)
        if not await self._admit(run, invocation_context, user_message):
            return _content("user", "(a prompt that was refused)")  # it must not reach the model in a later run either
        notes = run.pop_notes()
        if not notes:
            return None
        run.prompt = f"{run.prompt}\n{notes}"
        return types.Content(role=user_message.role, parts=[*(user_message.parts or ()), types.Part(text=notes)])

    async def _admit(self, run: AgentRun, context: Any, message: types.Content) -> bool:
        run.agent_type = getattr(context.agent, "name", None)
        return await run.begin(_text(message), resumed=bool(context.session.events))

    async def before_run_callback(self, *, invocation_context: Any) -> types.Content | None:
        """The last word on a prompt: another plugin may have put its own in place of what hooks judged."""
        self._take_places(invocation_context.plugin_manager.plugins)
        run, message = self._first_run(invocation_context), invocation_context.user_content
        if run.stopped is None and message is not None and not (run.open and _text(message) == run.prompt):
            await self._admit(run, invocation_context, message)
        return None if run.stopped is None else _content("model", run.stopped)

    async def after_run_callback(self, *, invocation_context: Any, error: Exception | None = None) -> None:
        run = self._pop(invocation_context.invocation_id)
        if run is not None:
            await run.end(error)

    on_run_error_callback = after_run_callback

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> types.Content | None:
        """The first agent is the run's own; those it hands over to are subagents."""
        first = self._first_run(callback_context)
        if not first.agents:
            first.agents[agent.name] = first
            first.agent_type = agent.name
        if agent.name in first.agents:
            return None
        run = first.agents[agent.name] = AgentRun(self._asking, agent=agent.name, parent=first)
        return None if await run.begin("") else _content("model", run.stopped or "")

    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """An agent that never asked a model itself, as a sequence or a loop, stops here; it may be run again."""
        first = self._first_run(callback_context)
        run = steps.run_of(first, agent.name)
        stops = agent.name in first.agents and not run.finished and sys.exception() is None
        if stops and await run.finish(None) is not None:
            log.warning("a hook wants `%s` to keep going, for which ADK has no way here", agent.name)
        if run is not first:
            first.agents.pop(agent.name, None)

    async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> LlmResponse | None:
        """Tell the model what hooks had to say, or answer in its place when one of them ended the run."""
        run = self._run_of(callback_context)
        if run.stopped is not None:
            return LlmResponse(content=_content("model", run.stopped))
        llm_request.contents = [part for content in llm_request.contents for part in _with_feedback(content)]
        notes = run.pop_notes()
        if notes:
            llm_request.contents.append(_content("user", notes))
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        """A final answer is the agent's wish to stop.

        ADK calls the model again after an answer that ends with the result of code it ran: that is how a hook's
        feedback travels; `before_model_callback` turns it into a message of the user.
        """
        parts = (llm_response.content.parts if llm_response.content else None) or []
        if not parts or llm_response.partial or any(part.function_call for part in parts):
            return None
        feedback = await self._run_of(callback_context).finish(_text(llm_response.content))
        if feedback is None:
            return None
        result = types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output=_FEEDBACK + feedback)
        content = types.Content(role="model", parts=[*parts, types.Part(code_execution_result=result)])
        return llm_response.model_copy(update={"content": content})

    async def _judge_call(self, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> Any:
        """What ADK is told before a tool is called: an answer in its place, if it was refused."""
        call = await self._run_of(tool_context).judge(tool.name, tool_args, tool_context.function_call_id or "")
        if call.refused is not None:
            return {"error": call.refused}
        if call.rewritten:
            tool_args.clear()
            tool_args.update(call.arguments)
        self._calls.enter(tool_context, call)
        return None

    async def after_tool_callback(self, *, tool: Any, tool_context: Any, result: Any, **more: Any) -> Any:
        """What hooks make of a result; a refusal, which ADK shows here too, is not a result."""
        call = self._calls.leave(tool_context)
        if call is None:
            return None
        says_error = isinstance(result, dict) and (result.get("isError") or result.get("is_error"))
        if says_error and any(cls.__module__.startswith("google.adk.tools.mcp_tool") for cls in type(tool).__mro__):
            said = await call.failed(steps.text_of(result.get("content")))
        else:
            said = await call.succeeded(result)
        if not said.changes:
            return None
        value = said.output if said.replaces else result
        body = value if isinstance(value, dict) else {"result": value}  # a function response is always an object
        return {**body, _CONTEXT: "\n\n".join(said.notes)} if said.notes else body

    async def on_tool_error_callback(self, *, tool_context: Any, error: Exception, **more: Any) -> None:
        if call := self._calls.leave(tool_context):
            await call.raised(error)


def _text(content: types.Content | None) -> str:
    return "\n".join(part.text for part in (content.parts if content else None) or () if part.text)


def _content(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def _with_feedback(content: types.Content) -> list[types.Content]:
    """The content, and after it as the user's message what a hook had to say to it."""
    parts = content.parts or []
    feedback = [part.code_execution_result.output for part in parts if _is_feedback(part)]
    if not feedback:
        return [content]
    rest = types.Content(role=content.role, parts=[part for part in parts if not _is_feedback(part)])
    return [rest, *(_content("user", text.removeprefix(_FEEDBACK)) for text in feedback)]


def _is_feedback(part: types.Part) -> bool:
    result = part.code_execution_result
    return result is not None and (result.output or "").startswith(_FEEDBACK)
