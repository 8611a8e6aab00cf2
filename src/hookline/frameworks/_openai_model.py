"""The OpenAI Agents SDK's model and runner with hooks in them.

Through the model hooks speak: context goes into its requests, feedback comes after its answers. The runner tells how
a run ended.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from hookline.errors import RunRefused, RunStopped
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, HookClient

require("openai-agents")

from agents import InputGuardrailTripwireTriggered, Model, ModelResponse, Usage
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputMessage, ResponseOutputText

_requesting: ContextVar[Mapping[int, AgentRun]] = ContextVar("hookline_requests", default=MappingProxyType({}))
"""The run whose request is being made, as each set of hooks knows it."""


def requesting(run: AgentRun) -> None:
    """The next request in this task is one of `run`."""
    _requesting.set({**_requesting.get(), id(run.client): run})


_SPEECH = ("message", "reasoning")


class GuardedModel(Model):
    """Passes requests on to the agent's own model."""

    def __init__(self, asking: HookClient, inner: Model) -> None:
        self._asking = asking
        self._inner = inner
        self._inserted: WeakKeyDictionary[AgentRun, list[tuple[int, Any]]] = WeakKeyDictionary()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def close(self) -> None:
        await self._inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._inner.get_retry_advice(request)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        run = _requesting.get().get(id(self._asking))
        if run is None:
            return await self._inner.get_response(system_instructions, input, *args, **options)
        if run.stopped is not None:
            return ModelResponse(output=[_spoken(run, args, options)], usage=Usage(), response_id=None)
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


def _joined(answers: list[ModelResponse]) -> ModelResponse:
    """The answers of an agent that was sent back to work, as one; most often there is but one."""
    *earlier, last = answers
    if not earlier:
        return last
    usage = Usage()
    for one in answers:
        usage.add(one.usage)
    return replace(last, output=[item for one in answers for item in one.output], usage=usage)


def _spoken(run: AgentRun, args: tuple[Any, ...], options: dict[str, Any]) -> ResponseOutputMessage:
    """The answer of a run that a hook has stopped; one whose output is not text cannot give it."""
    schema = options.get("output_schema", args[2] if len(args) > 2 else None)
    if schema is not None and not schema.is_plain_text():
        raise RunStopped(run.stopped or "")
    text = ResponseOutputText(type="output_text", text=run.stopped or "", annotations=[])
    return ResponseOutputMessage(id="hookline", type="message", role="assistant", status="completed", content=[text])


class _Scope:
    """One call of `Runner.run`: its input and session, and the runs inside it as each set of hooks knows them."""

    def __init__(self, input: Any, session: Any) -> None:
        self.input = [_user(input)] if isinstance(input, str) else input if isinstance(input, list) else []
        self.session = session
        self.runs: list[AgentRun] = []

    async def close(self, error: BaseException | None) -> None:
        """The SDK is done, however it came to that: sessions of hooks are over, and refused prompts forgotten."""
        ours = isinstance(error, RunStopped | RunRefused | InputGuardrailTripwireTriggered)
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


def watch_runs() -> None:
    """From here on, what `Runner` starts is told how it ended; a runner of the application's own is left alone."""
    if type(get_default_agent_runner()) is AgentRunner:
        set_default_agent_runner(_Runner())


def ends_with_run(run: AgentRun) -> None:
    """The session of `run` is over when the SDK's run is that is going on here."""
    scope = _scope.get()
    if scope is not None:
        scope.runs.append(run)


class _Runner(AgentRunner):
    """The SDK's runner; it tells how a run ended, of which the hooks of an agent hear only if it went well."""

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
