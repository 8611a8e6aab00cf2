"""Hookline inside LangChain agents: `create_agent(model, tools, middleware=[HooklineMiddleware(hooks)])`.

Put it last in the list: the last middleware is the innermost, so what it judged is what runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, NotRequired
from uuid import UUID

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.events.base import thaw
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, CallResult, HookClient, SyncHookClient, ToolCall

require("langchain")

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolInvocationError
from langgraph.types import Command

__all__ = ["HooklineMiddleware"]


class ToolRefused(ToolInvocationError):
    """A call of an agent without the middleware was denied; its tool node tells its model the reason."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.message = message


class _Watch:
    """One call that was let through, and what goes on inside it."""

    def __init__(self, asking: SyncHookClient, run: AgentRun, call: ToolCall) -> None:
        self.asking, self.run, self.call = asking, run, call
        self.place: UUID | None = None
        self.subagent: AgentRun | None = None
        self.calls: dict[UUID, ToolCall] = {}

    def is_judged(self, call_id: str | None, place: UUID | None) -> bool:
        """Whether this is the call itself, also when it is tried again, or a tool that another one uses."""
        if call_id is None:
            return True
        if call_id != self.call.id:
            return False
        self.place = self.place or place
        return place == self.place

    def judge(self, name: str, arguments: Any, call_id: str, use: UUID, agent: str | None) -> None:
        """Ask hooks about a call of an agent that does not ask them itself: its first makes it a subagent."""
        run = self.subagent
        if run is None:
            run = self.subagent = AgentRun(self.asking.hooks, agent=agent, parent=self.run)
            steps.done(steps.begin(self.asking, run, ""))
        call = steps.done(steps.judge(self.asking, run, name, arguments, call_id))
        refused = call.refused
        if refused is None and call.rewritten:
            refused = f"`{name}` was denied: a hook rewrites it, for which this agent needs the middleware itself"
        if refused is not None:
            raise ToolRefused(refused)
        self.run.notes += call.notes
        call.notes = ()
        self.calls[use] = call

    def end(self) -> None:
        """The call is over, and with it the agent that it started."""
        if self.subagent is not None:
            steps.done(steps.finish(self.asking, self.subagent, None))
            steps.done(steps.end(self.asking, self.subagent))


_watches: ContextVar[MappingProxyType[int, _Watch]] = ContextVar("hookline_watches", default=MappingProxyType({}))
"""The calls that this one is inside of, one for each set of hooks."""


class _Callbacks(BaseCallbackHandler):
    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        self._graphs: dict[UUID, UUID] = {}
        self._runs: dict[UUID, list[tuple[SyncHookClient, AgentRun]]] = {}

    def belongs_to_graph(self, asking: SyncHookClient, run: AgentRun) -> None:
        """The run ends with the graph that is running here."""
        graph = self._graphs.get(getattr(get_config().get("callbacks"), "parent_run_id", None) or UUID(int=0))
        if graph is not None:
            self._runs.setdefault(graph, []).append((asking, run))

    # -- graphs --------------------------------------------------------------------------------------------------

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, tags: Any = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Remember whose node this is: a graph marks the runs of its nodes."""
        if parent_run_id is None:
            return
        is_node = any(tag.startswith("graph:step:") for tag in tags or ())
        graph = parent_run_id if is_node else self._graphs.get(parent_run_id)
        if graph is not None:
            self._graphs[run_id] = graph

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **more: Any) -> None:
        self._graphs.pop(run_id, None)
        self._runs.pop(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self._graphs.pop(run_id, None)
        runs = self._runs.pop(run_id, ())
        if not isinstance(error, GraphBubbleUp):  # an interrupt, after which the run goes on
            for asking, run in runs:
                steps.done(steps.end(asking, run, error))

    # -- tool calls ----------------------------------------------------------------------------------------------

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, inputs: Any = None,
        tool_call_id: str | None = None, metadata: Any = None, **more: Any,
    ) -> None:  # fmt: skip
        for watch in _watches.get().values():
            if not watch.is_judged(tool_call_id, parent_run_id):
                given = inputs if isinstance(inputs, dict) else {"input": input_str}
                agent = (metadata or {}).get("lc_agent_name")
                watch.judge(serialized["name"], given, tool_call_id or "", run_id, agent)

    def on_tool_end(self, output: Any, *, run_id: UUID, **more: Any) -> None:
        self._over(run_id, steps.succeeded, getattr(output, "content", output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self._over(run_id, steps.failed, error)

    def _over(self, run_id: UUID, step: Callable[..., Any], result: Any) -> None:
        for watch in _watches.get().values():
            call = watch.calls.pop(run_id, None)
            if call is not None and watch.subagent is not None:
                watch.run.notes += steps.done(step(watch.asking, watch.subagent, call, result)).notes


CALLBACKS = _Callbacks()
register_configure_hook(ContextVar("hookline_callbacks", default=CALLBACKS), inheritable=True)


@contextmanager
def calling(asking: SyncHookClient, run: AgentRun, call: ToolCall) -> Iterator[None]:
    """Whatever starts in here belongs to `run`, and tool calls of agents that do not ask hooks are judged."""
    watch = _Watch(asking, run, call)
    token = _watches.set(MappingProxyType({**_watches.get(), id(asking.hooks): watch}))
    try:
        with steps.inside(run):
            yield
    finally:
        _watches.reset(token)
        watch.end()


_RUNS = "hookline_runs"
Update = dict[str, Any] | None


class HooklineState(AgentState[Any]):
    """The agent's state, with the run of each set of hooks; never checkpointed, never shown."""

    hookline_runs: NotRequired[Annotated[dict[str, AgentRun], UntrackedValue, PrivateStateAttr]]  # type: ignore[valid-type]


class _Runs:
    """The runs of one middleware, by the state or the thread that they belong to."""

    def __init__(self, name: str, asking: HookClient, sync: SyncHookClient) -> None:
        self._name, self._asking, self._sync = name, asking, sync
        self._resumed: dict[str, AgentRun] = {}

    def new(self) -> AgentRun:
        """A run that begins here, and ends with its graph."""
        agent = get_config().get("metadata", {}).get("lc_agent_name")
        run = self._asking.new_run(session_id=_thread(), agent=agent)
        CALLBACKS.belongs_to_graph(self._sync, run)
        return run

    def of(self, state: Any) -> AgentRun:
        """The run that a state belongs to; after an interrupt the graph resumes without one."""
        runs = state.get(_RUNS) if isinstance(state, dict) else None
        if runs and self._name in runs:
            return runs[self._name]
        thread = _thread()
        run = self._resumed.get(thread) if thread is not None else None
        if run is None or not run.open:
            run = self.new()
            run.open = True
            if thread is not None:
                self._resumed[thread] = run
        return run

    def forget(self, state: Any) -> dict[str, Any]:
        """The state without a run that is over."""
        self._resumed.pop(_thread() or "", None)
        return {_RUNS: {name: run for name, run in state.get(_RUNS, {}).items() if name != self._name}}


class HooklineMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends a LangChain agent's prompts, tool calls and endings through `hooks`; works with `invoke` and `ainvoke`.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    The session is the thread (`configurable.thread_id`), else one per run. Of two sets of hooks in one agent, the
    second needs a `name`.
    """

    state_schema = HooklineState
    name = "HooklineMiddleware"

    def __init__(self, hooks: Fires, *, on_ask: OnAsk | None = None, name: str = name) -> None:
        super().__init__()
        require("langchain")
        self.name = name
        self._asking = HookClient(hooks, on_ask)
        self._sync = SyncHookClient(hooks, on_ask)
        self._runs = _Runs(name, self._asking, self._sync)

    # -- the run -------------------------------------------------------------------------------------------------

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Any) -> Update:
        return steps.done(self._begin(self._sync, state))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: Any, runtime: Any) -> Update:
        return await self._begin(self._asking, state)

    async def _begin(self, asking: HookClient, state: Any) -> Update:
        run = self._runs.new()
        messages = state["messages"]
        # what the user added for this run: the messages since the model last spoke
        since = next((at for at in range(len(messages), 0, -1) if isinstance(messages[at - 1], AIMessage)), 0)
        prompts = [one for one in messages[since:] if isinstance(one, HumanMessage)]
        resumed = len(messages) > len(prompts)
        update = {_RUNS: {**state.get(_RUNS, {}), self.name: run}}
        if await steps.begin(asking, run, "\n".join(steps.text_of(one.content) for one in prompts), resumed=resumed):
            return update
        unseen = [RemoveMessage(id=one.id) for one in prompts if one.id]  # nor may it be seen in a later run
        return {**update, "messages": [*unseen, AIMessage(run.stopped or "")], "jump_to": "end"}

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Any) -> Update:
        return self.before_model(state, runtime)

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> Update:
        """Tell the model what hooks had to say, or end the run that one of them stopped."""
        run = self._runs.of(state)
        if run.stopped is not None:
            return {"messages": [AIMessage(run.stopped)], "jump_to": "end"}
        notes = run.pop_notes()
        return {"messages": [HumanMessage(notes)]} if notes else None

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> Update:
        return steps.done(self._finish(self._sync, state)) if _is_final(state) else None

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: Any, runtime: Any) -> Update:
        return await self._finish(self._asking, state) if _is_final(state) else None

    async def _finish(self, asking: HookClient, state: Any) -> Update:
        feedback = await steps.finish(asking, self._runs.of(state), steps.text_of(state["messages"][-1].content))
        return None if feedback is None else {"messages": [HumanMessage(feedback)], "jump_to": "model"}

    def after_agent(self, state: Any, runtime: Any) -> Update:
        return steps.done(self._end(self._sync, state))

    async def aafter_agent(self, state: Any, runtime: Any) -> Update:
        return await self._end(self._asking, state)

    async def _end(self, asking: HookClient, state: Any) -> Update:
        await steps.end(asking, self._runs.of(state))
        return self._runs.forget(state)

    # -- a tool call ---------------------------------------------------------------------------------------------

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        async def handle(changed: ToolCallRequest) -> Any:  # awaits nothing
            return handler(changed)

        return steps.done(self._call(self._sync, request, handle))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        return await self._call(self._asking, request, handler)

    async def _call(
        self, asking: HookClient, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        run, given = self._runs.of(request.state), request.tool_call
        call = await steps.judge(asking, run, given["name"], given["args"], given.get("id") or "")
        if call.refused is not None:
            return ToolMessage(call.refused, tool_call_id=call.id, name=call.name, status="error")
        try:
            with calling(self._sync, run, call):  # what was judged is what runs, whatever becomes of the original
                answer = await handler(request.override(tool_call={**given, "args": thaw(call.arguments)}))
        except GraphBubbleUp:
            raise
        except BaseException as error:
            await steps.failed(asking, run, call, error)
            raise
        return await _answered(asking, run, call, answer)


def _thread() -> str | None:
    thread = get_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


def _is_final(state: Any) -> bool:
    last = state["messages"][-1]
    if state.get("structured_response") is not None:
        return True
    return isinstance(last, AIMessage) and not last.tool_calls


async def _answered(asking: HookClient, run: AgentRun, call: ToolCall, answer: Any) -> Any:
    """What the tool answered, as hooks leave it: a message, or a command with a message in it."""
    if isinstance(answer, ToolMessage):
        return await _message(asking, run, call, answer)
    if isinstance(answer, Command) and isinstance(answer.update, dict):
        messages = list(answer.update.get("messages", ()))
        for position, one in enumerate(messages):
            if isinstance(one, ToolMessage) and one.tool_call_id == call.id:
                messages[position] = await _message(asking, run, call, one)
        return replace(answer, update={**answer.update, "messages": messages}) if messages else answer
    await steps.succeeded(asking, run, call, answer)
    return answer


async def _message(asking: HookClient, run: AgentRun, call: ToolCall, message: ToolMessage) -> ToolMessage:
    judged = steps.failed if message.status == "error" else steps.succeeded
    result: CallResult = await judged(asking, run, call, message.content)
    return message.model_copy(update={"content": result.text(message.content)}) if result.changes else message
