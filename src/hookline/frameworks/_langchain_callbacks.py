"""What LangChain tells its callbacks: runs that end with an error, and tool calls of agents without our middleware.

LangChain asks `register_configure_hook` for handlers whenever a runnable starts, so one handler hears of every graph:
that a middleware's own hooks are not called once a graph gives up (a recursion limit, a cancellation) is how a
session would never end, and a tool may start an agent that was built without the middleware, as deepagents' does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any
from uuid import UUID

from hookline.frameworks.agent_runs import AgentRun, SyncHookClient, done, inside
from hookline.frameworks.steps import ToolCall, begin, end, failed, finish, judge, succeeded
from hookline.frameworks.versions import require

require("langchain")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolInvocationError


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
            done(begin(self.asking, run, ""))
        call = done(judge(self.asking, run, name, arguments, call_id))
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
            done(finish(self.asking, self.subagent, None))
            done(end(self.asking, self.subagent))


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
                done(end(asking, run, error))

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
        for watch in _watches.get().values():
            call = watch.calls.pop(run_id, None)
            if call is not None and watch.subagent is not None:
                content = getattr(output, "content", output)
                watch.run.notes += done(succeeded(watch.asking, watch.subagent, call, content)).notes

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        for watch in _watches.get().values():
            call = watch.calls.pop(run_id, None)
            if call is not None and watch.subagent is not None:
                watch.run.notes += done(failed(watch.asking, watch.subagent, call, error)).notes


CALLBACKS = _Callbacks()
register_configure_hook(ContextVar("hookline_callbacks", default=CALLBACKS), inheritable=True)


@contextmanager
def calling(asking: SyncHookClient, run: AgentRun, call: ToolCall) -> Iterator[None]:
    """Whatever starts in here belongs to `run`, and tool calls of agents that do not ask hooks are judged."""
    watch = _Watch(asking, run, call)
    token = _watches.set(MappingProxyType({**_watches.get(), id(asking.hooks): watch}))
    try:
        with inside(run):
            yield
    finally:
        _watches.reset(token)
        watch.end()
