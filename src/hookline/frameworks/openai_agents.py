"""Hookline inside the OpenAI Agents SDK: `Runner.run(guarded(agent, hooks), "…")`."""

import asyncio
import dataclasses
import inspect
import json
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.errors import HookError, RunRefused, RunStopped
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, HookClient

require("openai-agents")

import agents
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner
from agents.tool_context import ToolContext
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputMessage, ResponseOutputText

log: logging.Logger = logging.getLogger("hookline.adapters")
_RUNS_ELSEWHERE = (
    agents.FileSearchTool, agents.WebSearchTool, agents.HostedMCPTool, agents.CodeInterpreterTool,
    agents.ImageGenerationTool,
)  # fmt: skip
"""Tools that run on the model provider's side: there is nothing here to stop."""
_GUARDS = "_hookline_guards"
_HANDLED = "_function_tool_default_failure_handled"  # where the SDK notes that it made a text of what a tool raised
_PASSED_ON = frozenset({"on_handoff", "on_tool_start", "on_tool_end", "on_llm_start", "on_llm_end"})  # told as it is
_SPEECH = ("message", "reasoning")
_MCP_FAILED = "_hookline_mcp_failed"  # where we note an MCP server's error, of which the SDK hands on the text alone
_requesting: ContextVar[Mapping[int, AgentRun]] = ContextVar("hookline_requests", default=MappingProxyType({}))
"""The run whose request is being made, as each set of hooks knows it."""


def guarded(agent: agents.Agent[Any], hooks: Fires, *, on_ask: OnAsk | None = None) -> Any:
    """A copy of `agent`, and of the agents it hands off to, whose prompts and tool calls go through `hooks`.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    A refused prompt ends the run with the SDK's `InputGuardrailTripwireTriggered`. Sending the agent back to work
    needs an agent with a `Model` object; one that names its model only ends. What the copy is given later is guarded as
    well. An agent that is used as a tool of another has to be guarded before `as_tool()`; else it is refused.
    """
    if type(get_default_agent_runner()) is AgentRunner:  # one of the application's own is left alone
        set_default_agent_runner(_Runner())
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
            if (scope := _scope.get()) is not None:  # the session is over when the SDK's run is
                scope.runs.append(found)
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
            run = guard.before_request(run_context, self)
            _requesting.set({**_requesting.get(), id(run.client): run})
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


# -- the agent's own model, through which hooks speak: context goes into requests, feedback comes after answers --------


class GuardedModel(agents.Model):
    """Passes requests on to the agent's own model."""

    def __init__(self, asking: HookClient, inner: agents.Model) -> None:
        self._asking = asking
        self._inner = inner
        self._inserted: weakref.WeakKeyDictionary[AgentRun, list[tuple[int, Any]]] = weakref.WeakKeyDictionary()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def close(self) -> None:
        await self._inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._inner.get_retry_advice(request)

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> agents.ModelResponse:
        run = _requesting.get().get(id(self._asking))
        if run is None:
            return await self._inner.get_response(system_instructions, input, *args, **options)
        if run.stopped is not None:
            return agents.ModelResponse(output=[_spoken(run, args, options)], usage=agents.Usage(), response_id=None)
        items, answers = self._items(run, input), []
        while True:
            response = await self._inner.get_response(system_instructions, items, *args, **options)
            answers.append(response)
            feedback = await self._feedback(run, response.output)
            if feedback is None:
                return _joined(answers)
            items = self._going_on(run, items, response.output, feedback)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> AsyncIterator[Any]:
        run = _requesting.get().get(id(self._asking))
        if run is None:
            async for event in self._inner.stream_response(system_instructions, input, *args, **options):
                yield event
            return
        if run.stopped is not None:
            response = Response(
                id="hookline", created_at=0, model="hookline", object="response", parallel_tool_calls=False,
                output=[_spoken(run, args, options)], tool_choice="auto", tools=[],
            )  # fmt: skip
            yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)
            return
        items = self._items(run, input)
        said: list[Any] = []
        last: Any = None
        feedback: str | None = ""
        while feedback is not None:
            last = None
            async for event in self._inner.stream_response(system_instructions, items, *args, **options):
                if event.type == "response.completed":
                    last = event  # the SDK takes it for the end of the answer, and hooks have not been asked yet
                else:
                    yield event
            output = [] if last is None else last.response.output
            said += output
            feedback = None if last is None else await self._feedback(run, output)
            if feedback is not None:
                items = self._going_on(run, items, output, feedback)
        if last is not None:
            yield last.model_copy(update={"response": last.response.model_copy(update={"output": said})})

    def _items(self, run: AgentRun, input: Any) -> list[Any]:
        """The request's input with what hooks have said so far, each at the place where it was said."""
        items = [_user(input)] if isinstance(input, str) else list(input)
        inserted = self._inserted.setdefault(run, [])
        notes = run.pop_notes()
        if notes:
            inserted.append((len(items) + len(inserted), _user(notes)))
        for position, item in inserted:
            if position <= len(items):
                items.insert(position, item)
        return items

    def _going_on(self, run: AgentRun, items: list[Any], output: Any, feedback: str) -> list[Any]:
        spoken = [*items, *(item.model_dump(exclude_unset=True) for item in output)]
        self._inserted[run].append((len(spoken), _user(feedback)))
        return [*spoken, _user(feedback)]

    async def _feedback(self, run: AgentRun, output: list[Any]) -> str | None:
        """What to say to an agent whose answer is its last, if a hook wants it to keep going."""
        if any(getattr(item, "type", "") not in _SPEECH for item in output):
            return None
        texts = [steps.text_of(item.content) for item in output if item.type == "message"]
        return await run.finish("\n".join(texts))


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _joined(answers: list[agents.ModelResponse]) -> agents.ModelResponse:
    """The answers of an agent that was sent back to work, as one; most often there is but one."""
    *earlier, last = answers
    if not earlier:
        return last
    usage = agents.Usage()
    for one in answers:
        usage.add(one.usage)
    return dataclasses.replace(last, output=[item for one in answers for item in one.output], usage=usage)


def _spoken(run: AgentRun, args: tuple[Any, ...], options: dict[str, Any]) -> ResponseOutputMessage:
    """The answer of a run that a hook has stopped; one whose output is not text cannot give it."""
    schema = options.get("output_schema", args[2] if len(args) > 2 else None)
    if schema is not None and not schema.is_plain_text():
        raise RunStopped(run.stopped or "")
    text = ResponseOutputText(type="output_text", text=run.stopped or "", annotations=[])
    return ResponseOutputMessage(id="hookline", type="message", role="assistant", status="completed", content=[text])


# -- the SDK's runner, which tells how a run ended: the hooks of an agent hear of that only if it went well ------------


class _Scope:
    """One call of `Runner.run`: its input and session, and the runs inside it as each set of hooks knows them."""

    def __init__(self, input: Any, session: Any) -> None:
        self.input = [_user(input)] if isinstance(input, str) else input if isinstance(input, list) else []
        self.session = session
        self.runs: list[AgentRun] = []

    async def close(self, error: BaseException | None) -> None:
        """The SDK is done, however it came to that: sessions of hooks are over, and refused prompts forgotten."""
        ours = isinstance(error, RunStopped | RunRefused | agents.InputGuardrailTripwireTriggered)
        for run in self.runs:
            await run.end(None if ours else error)
        if self.session is None or not any(run.refused for run in self.runs):
            return
        for item in reversed(self.input):  # a refused prompt stays in the session, and later ones are refused with it
            last = await self.session.pop_item()
            if last is None:
                return
            if (last.get("role"), last.get("content")) != (item.get("role"), item.get("content")):
                await self.session.add_items([last])
                return


_scope: ContextVar[_Scope | None] = ContextVar("hookline_openai_scope", default=None)


class _Runner(AgentRunner):
    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        with _scoped(input, options) as scope:
            return await _closing(super().run(starting_agent, input, **options), scope)

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        with _scoped(input, options) as scope:
            result = super().run_streamed(starting_agent, input, **options)
        if result.run_loop_task is not None:
            result.run_loop_task = asyncio.create_task(_closing(result.run_loop_task, scope, result))
        return result


@contextmanager
def _scoped(input: Any, options: dict[str, Any]) -> Iterator[_Scope]:
    scope = _Scope(input, options.get("session"))
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


async def _closing(work: Awaitable[Any], scope: _Scope, streamed: Any = None) -> Any:
    """The run's own work, and after it the end of its sessions."""
    try:
        answer = await work
    except BaseException as error:
        await scope.close(error)
        raise
    await scope.close(streamed and streamed._stored_exception)  # noqa: SLF001 - what `stream_events` will raise
    return answer
