"""The host answers (FACTS.md §8): its model, or a small agent that looks for itself first, or a tool of an MCP server.

The first two are asked one question, which is answered ok or not ok; a tool's text is read as a command's stdout would
be.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.hook import AgentCheck, Hook, McpTool, Prompt
from hookline.core.placeholders import DOTTED, fill, in_every_text
from hookline.core.wire import claude
from hookline.core.wire.strict import check_json, check_text
from hookline.errors import HookFailed, ReplyError
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Reply, deny, keep_going, stop
from hookline.runners import Question, Services

T = TypeVar("T")
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)  # models like to put their JSON between marks
_CONDITION = (
    "Look at the conversation above. Has this condition for stopping been met? Answer ok if it has; if not, say what "
    "is missing, and set `impossible` if it can never be met.\n\nCondition: "
)


class PromptAnswer(msgspec.Struct):
    """What the model must answer; a missing reason is accepted."""

    ok: bool
    reason: str = ""
    impossible: bool = False


class ServiceRunner:
    """Has the host answer, with what it can do."""

    def __init__(self, services: Callable[[], Services]) -> None:
        self._services = services

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Ask once; no answer, one that cannot be understood, and a tool's error are failures."""
        return await _ASK[type(hook.action)](hook, event, self._services())


def _able(service: T | None, kind: str, what: str) -> T:
    if service is None:
        raise HookFailed(f"needs {what}, and this set of hooks has none; set `hooks.services.{kind}`")
    return service


async def _ask_model(hook: Hook, event: Event, services: Services) -> RunnerResult:
    action = hook.action
    assert isinstance(action, Prompt)
    text = await _able(services.judge, "judge", "a model")(question(action, event))
    return RunnerResult(reply=consequence(understand(text), action, event), stdout=text)


async def _ask_agent(hook: Hook, event: Event, services: Services) -> RunnerResult:
    assert isinstance(hook.action, AgentCheck)
    answer = await _able(services.inspector, "inspector", "an agent")(question(hook.action, event))
    if answer is None:
        raise HookFailed("got no answer from its agent")
    return RunnerResult(reply=_check_consequence(understand(answer), event))


async def _call_tool(hook: Hook, event: Event, services: Services) -> RunnerResult:
    action = hook.action
    assert isinstance(action, McpTool)
    call = _able(services.mcp, "mcp", "MCP servers")
    result = await call(action.server, action.tool, filled(action.input, claude.event_object(event)))
    if result.is_error:
        why = f"asked tool `{action.tool}` of `{action.server}`, which failed: {result.text}"
        raise HookFailed(why, stdout=result.text)
    return RunnerResult(reply=_mcp_reply(result.text, hook, event), stdout=result.text)


_ASK: dict[type, Callable[[Hook, Event, Services], Awaitable[RunnerResult]]] = {
    Prompt: _ask_model,
    AgentCheck: _ask_agent,
    McpTool: _call_tool,
}


def question(action: Prompt | AgentCheck, event: Event) -> Question:
    """The prompt with the event filled in; on Stop it is a condition on the conversation."""
    body = claude.encode_event(event).decode()
    given = "$ARGUMENTS" in action.prompt
    text = action.prompt.replace("$ARGUMENTS", body) if given else f"{action.prompt}\n\nARGUMENTS: {body}"
    stops = spec_of(event).keeps_going
    return Question(text=_CONDITION + text if stops else text, event=event, model=action.model, with_conversation=stops)


def understand(answer: str | Mapping[str, Any]) -> PromptAnswer:
    """The model's answer; prose, or JSON of another shape, is a failure."""
    try:
        if isinstance(answer, str):
            return msgspec.json.decode(_FENCE.sub(r"\1", answer.strip()), type=PromptAnswer)
        return msgspec.convert(answer, PromptAnswer)
    except msgspec.DecodeError as problem:
        why = f"got an answer from its model that is not `{{ok, reason}}`: {problem}"
        raise HookFailed(why, stdout=str(answer)) from None


def consequence(answer: PromptAnswer, action: Prompt, event: Event) -> Reply:
    """What an answer means on this event."""
    if answer.ok:
        return NOTHING
    spec = spec_of(event)
    if spec.keeps_going:
        return NOTHING if answer.impossible else keep_going(f"[{action.prompt}]: {answer.reason}")
    if spec.decides == "request":
        return NOTHING
    blocks = action.continue_on_block or not spec.stops
    return deny(f"[{action.prompt}]: {answer.reason}") if blocks else stop(answer.reason)


def _check_consequence(answer: PromptAnswer, event: Event) -> Reply:
    """Not ok is an ordinary block; where nothing can be blocked it ends the turn."""
    if answer.ok:
        return NOTHING
    reason = f"the agent's check was not met: {answer.reason}"
    spec = spec_of(event)
    if "keep_going" in spec.fields:
        return keep_going(reason)
    return deny(reason) if "deny" in spec.decisions else stop(reason)


def _mcp_reply(text: str, hook: Hook, event: Event) -> Any:
    """JSON is an answer; plain text says nothing, as FACTS.md §8 has it; what only looks like JSON is a failure."""
    trimmed, strict = text.strip(), hook.fails_closed(event)
    try:
        if not trimmed.startswith("{"):
            return check_text(trimmed, event.event_name) if strict else None
        if strict:
            check_json(trimmed, event.event_name)
        return claude.decode_reply(trimmed, event)
    except ReplyError as problem:
        raise HookFailed(str(problem), stdout=text) from None


def filled(value: Any, event: Mapping[str, Any]) -> Any:
    """`value` with every `${path.to.field}` replaced from the event; an unknown path becomes nothing."""
    return in_every_text(value, lambda text: fill(text, lambda path: _looked_up(event, path), DOTTED))


def _looked_up(event: Mapping[str, Any], path: str) -> str:
    found: Any = event
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if found is None:
        return ""
    return found if isinstance(found, str) else claude.encoded(found)
