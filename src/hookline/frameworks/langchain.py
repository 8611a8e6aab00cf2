"""Hookline inside LangChain agents: `create_agent(model, tools, middleware=[HooklineMiddleware(hooks)])`.

Put it last in the list: the last middleware is the innermost, so what it judged is what runs.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
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
from hookline.frameworks.steps import AgentRun, HookClient, SyncHookClient, ToolCall

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


class ToolRefused(ToolInvocationError):
    """A call of an agent without the middleware was denied; its tool node tells its model the reason."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.message = message


class _Watch:
    """One call that was let through, and what goes on inside it."""

    def __init__(self, client: SyncHookClient, call: ToolCall) -> None:
        self._client, self.call = client, call
        self._place: UUID | None = None
        self._subagent: AgentRun | None = None
        self.calls: dict[UUID, ToolCall] = {}

    def is_judged(self, call_id: str | None, place: UUID | None) -> bool:
        """Whether this is the call itself, also when it is tried again, or a tool that another one uses."""
        if call_id is None:
            return True
        if call_id != self.call.id:
            return False
        self._place = self._place or place
        return place == self._place

    def judge(self, name: str, arguments: Any, call_id: str, use: UUID, agent: str | None) -> None:
        """Ask hooks about a call of an agent that does not ask them itself: its first makes it a subagent."""
        run = self._subagent
        if run is None:
            run = self._subagent = AgentRun(self._client, agent=agent, parent=self.call.run)
            steps.done(run.begin(""))
        call = steps.done(run.judge(name, arguments, call_id))
        refused = call.refused
        if refused is None and call.rewritten:
            refused = f"`{name}` was denied: a hook rewrites it, for which this agent needs the middleware itself"
        if refused is not None:
            raise ToolRefused(refused)
        self.call.run.notes += call.notes
        call.notes = ()
        self.calls[use] = call

    def end(self) -> None:
        if self._subagent is not None:
            steps.done(self._subagent.finish(None))
            self._subagent.end_now()


_watches: ContextVar[MappingProxyType[int, _Watch]] = ContextVar("hookline_watches", default=MappingProxyType({}))
"""The calls that this one is inside of, one for each set of hooks."""


class _Callbacks(BaseCallbackHandler):
    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        self._graphs: dict[UUID, UUID] = {}
        self._runs: dict[UUID, list[AgentRun]] = {}

    def belongs_to_graph(self, run: AgentRun) -> None:
        graph = self._graphs.get(getattr(get_config().get("callbacks"), "parent_run_id", None) or UUID(int=0))
        if graph is not None:
            self._runs.setdefault(graph, []).append(run)

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
            for run in runs:
                run.end_now(error)

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
        self._over(run_id, ToolCall.succeeded, getattr(output, "content", output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self._over(run_id, ToolCall.failed, error)

    def _over(self, run_id: UUID, step: Callable[..., Any], result: Any) -> None:
        for watch in _watches.get().values():
            call = watch.calls.pop(run_id, None)
            if call is not None:
                watch.call.run.notes += steps.done(step(call, result)).notes


CALLBACKS = _Callbacks()
register_configure_hook(ContextVar("hookline_callbacks", default=CALLBACKS), inheritable=True)


@contextmanager
def calling(client: SyncHookClient, call: ToolCall) -> Iterator[None]:
    """Whatever starts in here belongs to the call's run, and tool calls of agents that do not ask hooks are judged."""
    watch = _Watch(client, call)
    token = _watches.set(MappingProxyType({**_watches.get(), id(client.hooks): watch}))
    try:
        with steps.inside(call.run):
            yield
    finally:
        _watches.reset(token)
        watch.end()


_RUNS = "hookline_runs"
Update = dict[str, Any] | None
Handler = Callable[[ToolCallRequest], Awaitable[Any]]


class HooklineState(AgentState[Any]):
    """The agent's state, with the run of each set of hooks; never checkpointed, never shown."""

    hookline_runs: NotRequired[Annotated[dict[str, AgentRun], UntrackedValue, PrivateStateAttr]]  # type: ignore[valid-type]


def _both(step: Callable[..., Coroutine[Any, Any, Update]], *may_jump_to: Any) -> Any:
    """A step of the middleware below, for `invoke` and for `ainvoke`."""

    @hook_config(can_jump_to=[*may_jump_to])
    def without_waiting(self: Any, state: Any, runtime: Any) -> Update:
        return steps.done(step(self, self.sync, state))

    @hook_config(can_jump_to=[*may_jump_to])
    async def waiting(self: Any, state: Any, runtime: Any) -> Update:
        return await step(self, self.client, state)

    return without_waiting, waiting


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
        self.name = name
        self.client, self.sync = HookClient(hooks, on_ask), SyncHookClient(hooks, on_ask)
        self._resumed: dict[str, AgentRun] = {}

    def _new_run(self, client: HookClient) -> AgentRun:
        run = client.new_run(session_id=_thread(), agent=get_config().get("metadata", {}).get("lc_agent_name"))
        CALLBACKS.belongs_to_graph(run)
        return run

    def _run_of(self, state: Any, client: HookClient) -> AgentRun:
        """The run that a state belongs to; after an interrupt the graph resumes without one."""
        runs = state.get(_RUNS) if isinstance(state, dict) else None
        run: AgentRun | None = (runs or {}).get(self.name)
        if run is None:
            thread = _thread()
            run = self._resumed.get(thread or "")
            if run is None or not run.open:
                run = self._new_run(client)
                run.open = True
                if thread is not None:
                    self._resumed[thread] = run
        run.client = client
        return run

    async def _begin(self, client: HookClient, state: Any) -> Update:
        run = self._new_run(client)
        messages = state["messages"]
        # what the user added for this run: the messages since the model last spoke
        since = next((at for at in range(len(messages), 0, -1) if isinstance(messages[at - 1], AIMessage)), 0)
        prompts = [one for one in messages[since:] if isinstance(one, HumanMessage)]
        resumed = len(messages) > len(prompts)
        update = {_RUNS: {**state.get(_RUNS, {}), self.name: run}}
        if await run.begin("\n".join(steps.text_of(one.content) for one in prompts), resumed=resumed):
            return update
        unseen = [RemoveMessage(id=one.id) for one in prompts if one.id]  # nor may it be seen in a later run
        return {**update, "messages": [*unseen, AIMessage(run.stopped or "")], "jump_to": "end"}

    async def _speak(self, client: HookClient, state: Any) -> Update:
        """Tell the model what hooks had to say, or end the run that one of them stopped."""
        run = self._run_of(state, client)
        if run.stopped is not None:
            return {"messages": [AIMessage(run.stopped)], "jump_to": "end"}
        notes = run.pop_notes()
        return {"messages": [HumanMessage(notes)]} if notes else None

    async def _finish(self, client: HookClient, state: Any) -> Update:
        last = state["messages"][-1]
        if state.get("structured_response") is None and not (isinstance(last, AIMessage) and not last.tool_calls):
            return None
        feedback = await self._run_of(state, client).finish(steps.text_of(last.content))
        return None if feedback is None else {"messages": [HumanMessage(feedback)], "jump_to": "model"}

    async def _end(self, client: HookClient, state: Any) -> Update:
        await self._run_of(state, client).end()
        self._resumed.pop(_thread() or "", None)
        return {_RUNS: {name: run for name, run in state.get(_RUNS, {}).items() if name != self.name}}

    before_agent, abefore_agent = _both(_begin, "end")
    before_model, abefore_model = _both(_speak, "end")
    after_model, aafter_model = _both(_finish, "model")
    after_agent, aafter_agent = _both(_end)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        async def handle(changed: ToolCallRequest) -> Any:  # awaits nothing
            return handler(changed)

        return steps.done(self._call(self.sync, request, handle))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Any:
        return await self._call(self.client, request, handler)

    async def _call(self, client: HookClient, request: ToolCallRequest, handler: Handler) -> Any:
        given = request.tool_call
        call = await self._run_of(request.state, client).judge(given["name"], given["args"], given.get("id") or "")
        if call.refused is not None:
            return ToolMessage(call.refused, tool_call_id=call.id, name=call.name, status="error")
        try:
            with calling(self.sync, call):  # what was judged is what runs, whatever becomes of the original
                answer = await handler(request.override(tool_call={**given, "args": thaw(call.arguments)}))
        except GraphBubbleUp:
            raise
        except BaseException as error:
            await call.failed(error)
            raise
        return await _answered(call, answer)


def _thread() -> str | None:
    thread = get_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


async def _answered(call: ToolCall, answer: Any) -> Any:
    """What the tool answered, as hooks leave it: a message, or a command with a message in it."""
    if isinstance(answer, ToolMessage):
        result = await (call.failed if answer.status == "error" else call.succeeded)(answer.content)
        return answer.model_copy(update={"content": result.text(answer.content)}) if result.changes else answer
    if isinstance(answer, Command) and isinstance(answer.update, dict):
        messages = list(answer.update.get("messages", ()))
        for position, one in enumerate(messages):
            if isinstance(one, ToolMessage) and one.tool_call_id == call.id:
                messages[position] = await _answered(call, one)
        return replace(answer, update={**answer.update, "messages": messages}) if messages else answer
    await call.succeeded(answer)
    return answer
