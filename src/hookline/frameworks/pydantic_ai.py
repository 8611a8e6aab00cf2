"""Hookline inside pydantic-ai agents: `Agent(model, capabilities=[HooklineCapability(hooks)])`."""

import copy
from dataclasses import replace
from typing import Any, Self

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.errors import RunRefused, RunStopped
from hookline.frameworks import require, steps
from hookline.frameworks.steps import AgentRun, HookClient, ToolCall

require("pydantic-ai")

from pydantic import ValidationError
from pydantic_ai import ModelRequestNode, RunContext, exceptions
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturn, UserPromptPart
from pydantic_graph import End

_NOT_MADE = (exceptions.CallDeferred, exceptions.ApprovalRequired, exceptions.SkipToolExecution)


class HooklineCapability(AbstractCapability[Any]):
    """Sends a pydantic-ai agent's prompts, tool calls and endings through `hooks`.

    A hook's `ask` is a deny unless `on_ask` says yes: it gets the verdict and returns `True`, `False` or a reply.
    The session is the conversation (`conversation_id`). Where the agent's output is not text, a refused prompt raises
    `RunRefused`, and a hook that stops the agent raises `RunStopped`.
    """

    _run: AgentRun  # of the copy that `for_run` makes, which pydantic-ai calls before any hook
    _judged: dict[str, ToolCall]  # its calls that hooks have let through, by their ids

    def __init__(self, hooks: Fires, *, on_ask: OnAsk | None = None) -> None:
        self._asking = HookClient(hooks, on_ask)

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost: whatever other capabilities change, they change before hooks judge it."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> Self:
        """Each run has an identity and tool calls of its own."""
        agent = ctx.agent.name if ctx.agent is not None else None
        run = self._asking.new_run(session_id=ctx.conversation_id or ctx.run_id, agent=agent)
        mine = copy.copy(self)
        mine.__dict__.update(_run=run, _judged={})
        return mine

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        run, model = self._run, getattr(ctx.model, "model_name", None)
        admitted = await run.begin(_prompt(ctx), resumed=bool(ctx.messages), model=model)
        if not admitted and not _answers_text(ctx):
            await run.end()
            raise RunRefused(run.stopped or "")
        async with run:
            return await handler()

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        """Tell the model what hooks had to say, or answer in its place when one of them ended the run."""
        run = self._run
        if run.stopped is not None:
            if not _answers_text(ctx):
                raise RunStopped(run.stopped)
            if run.refused:
                _forget_prompt(ctx.messages)
            raise exceptions.SkipModelRequest(ModelResponse(parts=[TextPart(run.stopped)]))
        notes = run.pop_notes()
        if notes:
            _add(ctx.messages, notes)
            if request_context.messages is not ctx.messages:
                _add(request_context.messages, notes)
        return request_context

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """The agent is done, unless a hook sends it back to work."""
        if not isinstance(result, End):
            return result
        feedback = await self._run.finish(steps.text_of(steps.plain(result.data.output)))
        return result if feedback is None else ModelRequestNode(request=ModelRequest(parts=[UserPromptPart(feedback)]))

    async def wrap_tool_execute(self, ctx: Any, *, call: ToolCallPart, args: Any, handler: Any, **more: Any) -> Any:
        return await self._around(call.tool_call_id, handler, args)

    async def _around(self, use_id: str, handler: Any, given: Any) -> Any:
        try:
            with steps.inside(self._run):
                return await handler(given)
        except _NOT_MADE:
            raise
        except Exception as error:
            call = self._judged.get(use_id)
            if call is not None:
                await call.raised(error)
            raise
        finally:
            self._judged.pop(use_id, None)

    async def before_tool_execute(self, ctx: RunContext[Any], *, call: ToolCallPart, args: Any, **more: Any) -> Any:
        judged = await self._run.judge(call.tool_name, args, call.tool_call_id)
        if judged.refused is not None:
            raise exceptions.SkipToolExecution(judged.refused)
        self._judged[call.tool_call_id] = judged
        return _validated(ctx, judged) if judged.rewritten else args

    async def after_tool_execute(self, ctx: Any, *, call: ToolCallPart, result: Any, **more: Any) -> Any:
        judged = self._judged.get(call.tool_call_id)
        if judged is None:
            return result
        own = result.return_value if isinstance(result, ToolReturn) else result
        said = await judged.succeeded(own)
        if not said.changes:
            return result
        if isinstance(own, str) or isinstance(said.output, str):
            own = said.text(own)
        else:
            own = said.output if said.replaces else own
            self._run.notes += said.notes
        return replace(result, return_value=own) if isinstance(result, ToolReturn) else own

    async def wrap_output_process(self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any) -> Any:
        if not output_context.has_function:
            return await handler(output)
        return await self._around(_output_id(output_context), handler, output)

    async def before_output_process(self, ctx: RunContext[Any], *, output_context: Any, output: Any) -> Any:
        """An output function, which the model calls with its last answer, is judged like a tool, too."""
        if not output_context.has_function:
            return output
        run, use_id = self._run, _output_id(output_context)
        name = output_context.function_name or getattr(output_context.tool_def, "name", None) or "output"
        judged = await run.judge(name, _output_arguments(output_context, steps.plain(output)), use_id)
        refused = judged.refused
        if refused is None and judged.rewritten:
            refused = f"`{name}` was denied: a hook rewrites it, which pydantic-ai has no way for at an output function"
        if run.stopped is not None:
            raise RunStopped(run.stopped)
        if refused is not None:
            raise exceptions.ModelRetry(refused)
        self._judged[use_id] = judged
        return output

    async def after_output_process(self, ctx: RunContext[Any], *, output_context: Any, output: Any) -> Any:
        judged = self._judged.get(_output_id(output_context)) if output_context.has_function else None
        if judged is None:
            return output
        said = await judged.succeeded(output)
        self._run.notes += said.notes
        return said.output if said.replaces else output


def _output_id(context: Any) -> str:
    return context.tool_call.tool_call_id if context.tool_call is not None else "output"


def _output_arguments(context: Any, output: Any) -> dict[str, Any]:
    """What the function gets, by name; pydantic-ai hands on the value of a single argument alone."""
    if isinstance(output, dict):
        return output
    names = list(context.tool_call.args_as_dict()) if context.tool_call is not None else []
    return {names[0] if len(names) == 1 else "output": output}


def _prompt(ctx: RunContext[Any]) -> Any:
    prompt = ctx.prompt
    if prompt is None or isinstance(prompt, str):
        return prompt
    return "\n".join(one if isinstance(one, str) else steps.text_of(steps.plain(one)) for one in prompt)


def _answers_text(ctx: RunContext[Any]) -> bool:
    return ctx.agent is None or ctx.agent.output_type is str


def _add(messages: list[Any], text: str) -> None:
    """Put `text` into the request that is about to be made."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    messages[-1] = replace(last, parts=[*last.parts, UserPromptPart(text)])


def _forget_prompt(messages: list[Any]) -> None:
    """A refused prompt must not reach the model with the history of a later run either."""
    last = messages[-1] if messages else None
    if isinstance(last, ModelRequest):
        kept = [part for part in last.parts if not isinstance(part, UserPromptPart)]
        messages[-1] = replace(last, parts=[*kept, UserPromptPart("(a prompt that was refused)")])


def _validated(ctx: RunContext[Any], call: ToolCall) -> dict[str, Any]:
    """The arguments that hooks put in place of the model's, checked as the model's were."""
    tool = ctx.tool_manager.tools.get(call.name) if ctx.tool_manager and ctx.tool_manager.tools else None
    if tool is None:
        return call.arguments
    try:
        validate = tool.args_validator.validate_python
        checked: dict[str, Any] = validate(call.arguments, allow_partial="off", context=ctx.validation_context)
    except ValidationError as problem:
        why = f"`{call.name}` was denied: a hook's rewrite does not fit the tool: {problem}"
        raise exceptions.SkipToolExecution(why) from None
    return checked
