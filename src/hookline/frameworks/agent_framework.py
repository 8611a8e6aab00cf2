"""Hookline inside Microsoft Agent Framework: `Agent(client, tools=[…], middleware=[HooklineMiddleware(hooks)])`."""

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, HookClient

require("agent-framework")

import agent_framework as framework

Next = Callable[[], Awaitable[None]]
Updates = AsyncIterator[framework.AgentResponseUpdate]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # bundles are marked experimental; which versions have them is checked above

    class _Bundle(framework.MiddlewareBundle):
        """Middleware of several kinds as one object."""


class HooklineMiddleware(_Bundle):
    """Sends an agent's prompts, tool calls and endings through `hooks`; put it last in the list of middleware.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    The session is the `AgentSession` the agent runs with, else one per run.
    """

    def __init__(self, hooks: Fires, *, on_ask: OnAsk | None = None) -> None:
        self._asking = HookClient(hooks, on_ask)
        super().__init__([self._around_run, self._before_request, self._around_call])  # told apart by their contexts

    async def _around_run(self, context: framework.AgentContext, call_next: Next) -> None:
        """The session, the prompt, and whether the agent may stop."""
        session = context.session
        run = self._asking.new_run(session_id=session.session_id if session else None, agent=context.agent.name)
        prompt = "\n".join(one.text for one in context.messages if one.role == "user")
        if not await run.begin(prompt, resumed=bool(session and session.state)):
            await run.end()
            said = framework.AgentResponse(messages=[_message("assistant", run.stopped)])
            context.result = _streamed(_once(run)) if context.stream else said
            return
        notes = run.pop_notes()
        if notes:
            context.messages = [*context.messages, _message("user", notes)]
        if context.stream:
            context.result = _streamed(self._updates(run, context, call_next))
        else:
            await self._run(run, context, call_next)

    async def _run(self, run: AgentRun, context: framework.AgentContext, call_next: Next) -> None:
        messages: list[framework.Message] = []
        async with run:
            while True:
                with steps.inside(run):
                    await call_next()
                messages += context.result.messages
                feedback = await run.finish(context.result.text)
                if feedback is None:
                    break
                context.messages = _continued(context, context.result, feedback)
        if run.stopped is not None:
            messages.append(_message("assistant", run.stopped))
        context.result.messages[:] = messages

    async def _updates(self, run: AgentRun, context: framework.AgentContext, call_next: Next) -> Updates:
        """The same for a run whose updates are consumed as they come."""
        async with run:
            feedback: str | None = ""
            while feedback is not None:
                with steps.inside(run):
                    await call_next()
                inner = context.result
                async for update in _pass(run, inner):
                    yield update
                final = await inner.get_final_response()
                feedback = await run.finish(final.text)
                if feedback is not None:
                    context.messages = _continued(context, final, feedback)
        if run.stopped is not None:
            yield _update(run.stopped)

    async def _before_request(self, context: framework.ChatContext, call_next: Next) -> None:
        """The model is told what hooks had to say."""
        run = steps.current_run(self._asking.hooks)
        notes = run.pop_notes() if run is not None else ""
        if notes:
            context.messages = [*context.messages, _message("user", notes)]
        await call_next()

    async def _around_call(self, context: framework.FunctionInvocationContext, call_next: Next) -> None:
        run = steps.current_run(self._asking.hooks)
        if run is None:
            run = self._asking.new_run(session_id=context.session.session_id if context.session else None)
        call = await run.judge(context.function.name, context.arguments, context.metadata.get("call_id", ""))
        if call.refused is not None:
            context.result = call.refused
            return _go_on_unless_stopped(run, context)
        if call.rewritten:
            context.arguments = call.arguments
        try:
            with steps.inside(run):
                await call_next()
        except framework.MiddlewareException:
            raise
        except Exception as error:
            await call.raised(error)
            raise
        said = await call.succeeded(context.result, _output)
        if said.changes:
            own = context.result
            more = [framework.Content.from_text(note) for note in said.notes]
            as_text = said.replaces or not isinstance(own, list)
            context.result = said.text(_output(own)) if as_text else [*own, *more]
        return _go_on_unless_stopped(run, context)


async def _pass(run: AgentRun, stream: Any) -> Updates:
    """The updates of one pass; the run is the current one while the agent works, not while the consumer does."""
    updates = aiter(stream)
    while True:
        try:
            with steps.inside(run):
                update = await anext(updates, None)
        except framework.MiddlewareTermination:
            return
        if update is None:
            return
        yield update


def _go_on_unless_stopped(run: AgentRun, context: framework.FunctionInvocationContext) -> None:
    if run.stopped is not None:
        raise framework.MiddlewareTermination(run.stopped, result=context.result)


def _message(role: str, text: str | None) -> framework.Message:
    return framework.Message(role=role, contents=[framework.Content.from_text(text or "")])


def _update(text: str | None) -> framework.AgentResponseUpdate:
    return framework.AgentResponseUpdate(role="assistant", contents=[framework.Content.from_text(text or "")])


async def _once(run: AgentRun) -> Updates:
    yield _update(run.stopped)


def _streamed(updates: Updates) -> Any:
    return framework.ResponseStream(updates, finalizer=framework.AgentResponse.from_updates)


def _continued(context: framework.AgentContext, result: Any, feedback: str) -> list[framework.Message]:
    """What the agent is given to go on with; a session knows what was said before."""
    before = [] if context.session is not None else [*context.messages, *result.messages]
    return [*before, _message("user", feedback)]


def _output(result: Any) -> Any:
    """What the tool returned, as text where it is text."""
    if isinstance(result, list | tuple) and all(isinstance(one, framework.Content) for one in result):
        texts = [one.text for one in result]
        return "\n".join(texts) if all(isinstance(text, str) for text in texts) else steps.plain(result)
    return steps.plain(result)
