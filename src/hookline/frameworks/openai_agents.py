"""Hookline inside the OpenAI Agents SDK: `Runner.run(guarded(agent, hooks), "…")`."""

import dataclasses
import inspect
import json
import logging
import weakref
from typing import Any

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.errors import HookError, RunRefused, RunStopped
from hookline.frameworks import require, steps
from hookline.frameworks._openai_model import GuardedModel, ends_with_run, requesting, watch_runs
from hookline.frameworks.steps import AgentRun, HookClient

require("openai-agents")

import agents
from agents.tool_context import ToolContext

log: logging.Logger = logging.getLogger("hookline.adapters")
_RUNS_ELSEWHERE = (
    agents.FileSearchTool, agents.WebSearchTool, agents.HostedMCPTool, agents.CodeInterpreterTool,
    agents.ImageGenerationTool,
)  # fmt: skip
"""Tools that run on the model provider's side: there is nothing here to stop."""
_GUARDS = "_hookline_guards"
_HANDLED = "_function_tool_default_failure_handled"  # where the SDK notes that it made a text of what a tool raised
_PASSED_ON = frozenset({"on_handoff", "on_tool_start", "on_tool_end", "on_llm_start", "on_llm_end"})  # told as it is
_MCP_FAILED = "_hookline_mcp_failed"  # where we note an MCP server's error, of which the SDK hands on the text alone


def guarded(agent: agents.Agent[Any], hooks: Fires, *, on_ask: OnAsk | None = None) -> Any:
    """A copy of `agent`, and of the agents it hands off to, whose prompts and tool calls go through `hooks`.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    A refused prompt ends the run with the SDK's `InputGuardrailTripwireTriggered`. Sending the agent back to work
    needs an agent with a `Model` object; one that names its model only ends. What the copy is given later is guarded as
    well. An agent that is used as a tool of another has to be guarded before `as_tool()`; else it is refused.
    """
    watch_runs()
    return _Guard(HookClient(hooks, on_ask)).agent(agent)


class _Guard:
    """What all agents share that were guarded together."""

    def __init__(self, asking: HookClient) -> None:
        self.asking = asking
        self._gate: Any = agents.InputGuardrail(guardrail_function=self._admit, name="hookline", run_in_parallel=False)
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._runs: dict[tuple[int, int], AgentRun] = {}

    def agent(self, agent: agents.Agent[Any]) -> Any:
        """The guarded copy of an agent; agents may hand off to each other in a circle."""
        if self.guards(agent):
            return agent
        if id(agent) in self._copies:
            return self._copies[id(agent)][1]
        fields = {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent) if field.init}
        fields |= {"tools": [*agent.tools], "handoffs": [*agent.handoffs]}
        copy = _guarded_class(type(agent), self)(**fields)
        self._copies[id(agent)] = (agent, copy)
        self.refresh(copy)
        return copy

    def dress(self, agent: Any) -> None:
        """Put the gate for prompts first, and learn when the agent starts and ends, whatever it brings of its own."""
        if self._gate not in agent.input_guardrails:
            agent.input_guardrails = [self._gate, *agent.input_guardrails]
        if not self.guards(agent.hooks):
            agent.hooks = self._marked(_Hooks(self, agent.hooks), agent.hooks)

    def guards(self, thing: Any) -> bool:
        """Whether an agent, its hooks or model, or the function behind a tool or a handoff, is one of ours."""
        return self in getattr(thing, _GUARDS, ())

    def refresh(self, agent: Any) -> None:
        """Put hooks around what the agent calls and hands off to, also what it was given since it was guarded."""
        agent.tools[:] = [self.tool(tool) for tool in agent.tools]
        agent.handoffs[:] = [self._handoff(handoff) for handoff in agent.handoffs]
        for server in agent.mcp_servers:
            own = getattr(server, "custom_data_extractor", None)
            if not self.guards(own):
                server.custom_data_extractor = self._marked(_noting_errors(own), own)
        model = agent.model
        if isinstance(model, agents.Model) and not self.guards(model):
            agent.model = self._marked(GuardedModel(self.asking, model), model)

    def _handoff(self, handoff: Any) -> Any:
        if isinstance(handoff, agents.Agent):
            return self.agent(handoff)
        original = handoff.on_invoke_handoff
        if self.guards(original):
            return handoff

        async def invoke(context: Any, arguments: str) -> Any:
            return self.agent(await original(context, arguments))

        return dataclasses.replace(handoff, on_invoke_handoff=self._marked(invoke, original))

    def tool(self, tool: Any) -> Any:
        if isinstance(tool, _RUNS_ELSEWHERE):
            return tool
        if not isinstance(tool, agents.FunctionTool):
            raise HookError(
                f"`{type(tool).__name__}` cannot be guarded: the SDK has no point where a hook could be asked; "
                "offer it as a function tool"
            )
        inner = getattr(tool, "_agent_instance", None)
        if inner is not None and not hasattr(inner, _GUARDS):
            told = f"`{tool.name}` is an agent whose own tools would not be judged; guard it before `as_tool()`"
            raise HookError(told)
        original = tool.on_invoke_tool
        if self.guards(original):
            return tool

        async def invoke(context: Any, raw: str) -> Any:
            return await self._call(original, context, raw)

        invoke.__annotations__ = {"context": ToolContext}  # which the SDK reads at every call: texts it would compile
        return dataclasses.replace(tool, on_invoke_tool=self._marked(invoke, original))

    def _marked(self, made: Any, original: Any) -> Any:
        setattr(made, _GUARDS, (self, *getattr(original, _GUARDS, ())))
        return made

    def first_run(self, context: Any) -> AgentRun:
        """Contexts of a run share one `usage`; an agent called as a tool has it too, but inside a run of ours."""
        outer = steps.current_run(self.asking.hooks)
        key = (id(context.usage), id(outer) if outer is not None else 0)
        found = self._runs.get(key)
        if found is None:
            trace = agents.get_current_trace()
            found = self._runs[key] = self.asking.new_run(session_id=getattr(trace, "group_id", None))
            ends_with_run(found)
            weakref.finalize(context.usage, self._runs.pop, key, None)
        return found

    async def _admit(self, context: Any, agent: Any, input: Any) -> agents.GuardrailFunctionOutput:
        run = self.first_run(context)
        if run.open:
            return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)
        run.agent_type = agent.name
        run.agents[agent.name] = run
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        said = [isinstance(item, dict) and item.get("role") == "user" for item in items]
        since = next((at for at in range(len(items), 0, -1) if not said[at - 1]), 0)  # where the model last spoke
        prompt = "\n".join(steps.text_of(item["content"]) for item in items[since:])
        admitted = await run.begin(prompt, resumed=since > 0)
        if not admitted:
            await run.end()
        return agents.GuardrailFunctionOutput(output_info=run.stopped, tripwire_triggered=not admitted)

    async def started(self, context: Any, agent: Any) -> None:
        """An agent takes over: one that was handed off to is a subagent."""
        first = self.first_run(context)
        if not first.agents:
            first.agents[agent.name] = first
        if agent.name in first.agents:
            return
        run = first.agents[agent.name] = AgentRun(self.asking, agent=agent.name, parent=first)
        if not await run.begin(""):
            raise RunRefused(run.stopped or "")

    async def ended(self, context: Any, agent: Any, output: Any) -> None:
        first = self.first_run(context)
        run = steps.run_of(first, agent.name)
        unasked = _by_name(agent) or not run.finished  # its last answer came from a model that is not ours, or a tool
        if unasked and await run.finish(steps.text_of(steps.plain(output))) is not None:
            log.warning("a hook wants `%s` to keep going; give the agent a Model object for that", agent.name)
        await first.end()

    def before_request(self, context: Any, agent: Any) -> AgentRun:
        """The run that is about to call its model; one that a hook stopped must not."""
        run = steps.run_of(self.first_run(context), agent.name)
        if run.stopped is not None and _by_name(agent):
            raise RunStopped(run.stopped)
        return run

    async def _call(self, original: Any, context: Any, raw: str) -> Any:
        run = steps.run_of(self.first_run(context), context.agent.name if context.agent is not None else "")
        call = await run.judge(context.tool_name, _arguments(raw), context.tool_call_id)
        if call.refused is not None:
            return call.refused
        try:
            with steps.inside(run):
                output = await original(context, json.dumps(call.arguments) if call.rewritten else raw)
        except BaseException as error:
            await call.raised(error)
            raise
        is_error = getattr(context, _HANDLED, False) or getattr(context, _MCP_FAILED, False)
        said = await (call.failed if is_error else call.succeeded)(output)
        return said.text(output) if said.changes else output


def _noting_errors(own: Any) -> Any:
    """What the SDK asks for an application's own data on each MCP result: it alone says whether that is an error."""

    async def extract(result: Any) -> Any:
        if result.is_error:
            setattr(result.run_context, _MCP_FAILED, True)
        data = own(result) if own is not None else None
        return await data if inspect.isawaitable(data) else data

    return extract


def _by_name(agent: Any) -> bool:
    """Whether the agent only names its model, so that there is none to speak through."""
    return not isinstance(agent.model, agents.Model)


def _guarded_class(cls: type[Any], guard: _Guard) -> type[Any]:
    """The agent's class with hooks in it; copies that the agent or the SDK makes of it have them, too."""

    class GuardedAgent(cls):
        def __post_init__(self) -> None:
            """Asked for every copy: `clone()` may have been given other guardrails and hooks."""
            super().__post_init__()
            guard.dress(self)

        async def get_all_tools(self, run_context: Any) -> list[Any]:
            """Asked before every request, in the task that makes it: the model learns here whose request it is."""
            guard.refresh(self)
            requesting(guard.before_request(run_context, self))
            found = await super().get_all_tools(run_context)
            return [guard.tool(tool) for tool in found]  # MCP servers bring tools of their own

        async def get_system_prompt(self, run_context: Any) -> str | None:
            """Without a `Model` object to add messages for, hooks speak through the instructions."""
            own: str | None = await super().get_system_prompt(run_context)
            run = guard.before_request(run_context, self)
            if not _by_name(self) or not run.notes:
                return own
            return "\n\n".join([own, *run.notes] if own else run.notes)

    setattr(GuardedAgent, _GUARDS, (guard, *getattr(cls, _GUARDS, ())))
    return GuardedAgent


class _Hooks(agents.AgentHooks[Any]):
    """Tells of agents that start and end, and passes everything on to the agent's own hooks."""

    def __init__(self, guard: _Guard, inner: Any) -> None:
        self._guard = guard
        self._inner = inner if inner is not None else agents.AgentHooks()

    async def on_start(self, context: Any, agent: Any) -> None:
        await self._guard.started(context, agent)
        await self._inner.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        await self._inner.on_end(context, agent, output)
        await self._guard.ended(context, agent, output)

    def __getattribute__(self, name: str) -> Any:
        return getattr(self._inner, name) if name in _PASSED_ON else super().__getattribute__(name)


def _arguments(raw: str) -> dict[str, Any]:
    """The arguments as the model wrote them; what is not an object is shown to hooks as it is."""
    try:
        value = json.loads(raw) if raw else {}
    except ValueError:
        value = raw
    return value if isinstance(value, dict) else {"input": value}
