"""Hookline inside CrewAI: `with guarding(hooks): crew.kickoff()`."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any
from uuid import uuid4

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, PendingCalls, SyncHookClient

require("crewai")

from crewai.agents.agent_executor import AgentExecutor
from crewai.hooks import HookAborted, InterceptionPoint
from crewai.hooks.dispatch import register, unregister

log: logging.Logger = logging.getLogger("hookline.adapters")
_SOURCE = "hookline"
_FINAL = "Final Answer:"


@contextmanager
def guarding(hooks: Fires, *, on_ask: OnAsk | None = None) -> Iterator[None]:
    """Whatever crews of this process do inside the `with` block goes through `hooks`, in whichever thread they do it.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    A refused prompt, and a hook that stops the agent, end `kickoff()` with CrewAI's `HookAborted`.
    """
    guard = _Guard(SyncHookClient(hooks, on_ask))
    points = guard.points()
    for point, hook in points.items():
        register(point, hook)
    try:
        yield
    finally:
        for point, hook in points.items():
            unregister(point, hook)
        guard.end_all()


def _closed(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """CrewAI swallows what a hook raises and goes on; all but its own exception must close the gate instead."""

    @wraps(hook)
    def run(context: Any) -> Any:
        try:
            return hook(context)
        except HookAborted:
            raise
        except Exception as problem:
            raise HookAborted(f"hooks could not be asked: {type(problem).__name__}: {problem}", _SOURCE) from problem

    return run


class _Guard:
    """The runs of the crews that work inside one `with` block."""

    def __init__(self, asking: SyncHookClient) -> None:
        self._asking = asking
        self._runs: dict[int, AgentRun] = {}
        self._executors: dict[int, Any] = {}
        self._calls = PendingCalls()
        self._refused: dict[int, str] = {}

    def points(self) -> dict[InterceptionPoint, Callable[[Any], Any]]:
        return {
            InterceptionPoint.INPUT: _closed(self._input),
            InterceptionPoint.EXECUTION_END: self._execution_end,
            InterceptionPoint.PRE_MODEL_CALL: _closed(self._before_model),
            InterceptionPoint.POST_MODEL_CALL: self._after_model,
            InterceptionPoint.PRE_TOOL_CALL: _closed(self._before_tool),
            InterceptionPoint.POST_TOOL_CALL: self._after_tool,
        }

    def _input(self, context: Any) -> None:
        """A crew or a flow starts, and its inputs are known; an agent alone is asked with its first request."""
        work = context.crew or context.flow
        if work is not None and not isinstance(work, AgentExecutor):
            self._begin(work, _prompt(work, context.inputs), getattr(work, "name", None))

    def _begin(self, work: Any, prompt: str, name: str | None) -> AgentRun:
        flow = getattr(work, "flow_id", None)  # a crew gets one for each kickoff
        run = self._asking.new_run(session_id=str(flow) if flow else None, agent=name)
        self._runs[id(work)] = run
        with suppress(RuntimeError):  # there is no loop here
            task = asyncio.current_task()
            if task is not None:  # CrewAI tells its hooks nothing of work that is cancelled
                task.add_done_callback(partial(self._left, run))
        if not steps.done(run.begin(prompt)):
            self._end(work, None)
            raise HookAborted(run.stopped or "", _SOURCE)
        return run

    def _execution_end(self, context: Any) -> None:
        work = context.crew or context.flow
        self._end(work.agent if isinstance(work, AgentExecutor) else work, context.error)

    def _end(self, work: Any, error: BaseException | None) -> None:
        run = self._runs.pop(id(work), None)
        self._executors.pop(id(work), None)
        if run is not None:
            run.end_now(None if isinstance(error, HookAborted) else error)

    def _left(self, run: AgentRun, task: asyncio.Task[Any]) -> None:
        """The task that began the work is over; work that was cancelled goes on in its thread, and calls no tool."""
        if run.open:
            run.stopped = "the work was cancelled"
            run.end_now(asyncio.CancelledError() if task.cancelled() else task.exception())

    def end_all(self) -> None:
        for run in list(self._runs.values()):
            run.end_now(asyncio.CancelledError())
        self._runs.clear()

    def _run_of(self, context: Any) -> AgentRun:
        """The run a context belongs to: its crew's, or that of an agent that works alone or for another agent."""
        outer = steps.current_run(self._asking.hooks)
        alone = outer is not None and id(context.crew) in self._runs and outer is self._runs[id(context.crew)]
        work = context.agent if alone or context.crew is None else context.crew
        executor = getattr(context, "executor", None)
        if work is context.agent and executor is not None and executor is not self._executors.get(id(work), executor):
            self._end(work, None)  # it was given other work before, which failed
        run = self._runs.get(id(work))
        if run is None:
            messages = reversed(getattr(context, "messages", None) or ())
            prompt = next((steps.text_of(one["content"]) for one in messages if one.get("role") == "user"), "")
            run = self._begin(work, prompt, getattr(context.agent, "role", None))
            self._executors[id(work)] = executor
        return run

    def _before_model(self, context: Any) -> None:
        run = self._run_of(context)
        if run.stopped is not None:
            raise HookAborted(run.stopped, _SOURCE)
        notes = run.pop_notes()
        if notes:
            context.messages.append({"role": "user", "content": notes})

    def _after_model(self, context: Any) -> str | None:
        """A final answer is the agent's wish to stop; one that has to keep going answers again."""
        run, answer = self._run_of(context), context.response
        changed = None
        while answer is not None and _is_final(context, answer):
            feedback = steps.done(run.finish(answer.partition(_FINAL)[2].strip() or answer))
            if feedback is None:
                break
            context.messages.append({"role": "assistant", "content": answer})
            context.messages.append({"role": "user", "content": feedback})
            again = context.llm.call(list(context.messages))
            if not isinstance(again, str):
                log.warning("an agent that was sent back to work wants to call tools, for which CrewAI has no way here")
                break
            changed = answer = again
        alone = context.crew is None or self._runs.get(id(context.agent)) is run
        if alone and (answer is None or _is_final(context, answer)):
            self._end(context.agent, None)
        return changed

    def _before_tool(self, context: Any) -> None:
        call = steps.done(self._run_of(context).judge(context.tool_name, context.tool_input, f"call_{uuid4().hex}"))
        if call.refused is None and call.rewritten:
            if not context.tool_input:
                call.refused = f"`{call.name}` was denied: CrewAI cannot rewrite a call without arguments"
            context.tool_input.clear()
            context.tool_input.update(call.arguments)
        if call.refused is not None:
            self._refused[id(context.tool_input)] = call.refused
            raise HookAborted(call.refused, _SOURCE)
        self._calls.enter(context.tool_input, call)

    def _after_tool(self, context: Any) -> str | None:
        """What the model reads: CrewAI itself would tell it only that a hook blocked the tool, not why."""
        call = self._calls.leave(context.tool_input)
        if call is None:
            return self._refused.pop(id(context.tool_input), None)
        own = context.tool_result if context.raw_tool_result is None else context.raw_tool_result
        said = steps.done(call.succeeded(own))
        return said.text(context.tool_result) if said.changes else None


def _prompt(work: Any, inputs: dict[str, Any] | None) -> str:
    """What the agents are asked to do: the tasks' descriptions with their inputs filled in, and the other inputs."""
    tasks, inputs = getattr(work, "tasks", None), inputs or {}
    if not tasks:
        return steps.text_of(inputs)
    # as they were written: CrewAI fills in the inputs of each kickoff again
    written = [(inputs and getattr(task, "_original_description", None)) or task.description for task in tasks]
    texts = [str(text) for text in written]
    unused = {name: value for name, value in inputs.items() if not any(f"{{{name}}}" in text for text in texts)}
    for name, value in inputs.items():
        texts = [text.replace(f"{{{name}}}", str(value)) for text in texts]
    return "\n".join([*texts, steps.text_of(unused)] if unused else texts)


def _is_final(context: Any, answer: str) -> bool:
    """With native tool calls every text is an answer; without them, answers are marked."""
    native = getattr(context.executor, "use_native_tools", None)
    if native is None:
        native = bool(getattr(context.llm, "supports_function_calling", bool)())
    return native or _FINAL in answer
