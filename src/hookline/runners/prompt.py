"""A model judges, or a small agent that looks for itself first: one question, answered ok or not ok (FACTS.md §8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.hook import AgentCheck, Hook, Prompt
from hookline.core.wire import claude
from hookline.errors import HookFailed
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Reply, deny, keep_going, stop
from hookline.runners.services import Question, ServiceRunner, missing

#: models like to put their JSON between marks
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
_CONDITION = (
    "Look at the conversation above. Has this condition for stopping been met? Answer ok if it has; if not, say what "
    "is missing, and set `impossible` if it can never be met.\n\nCondition: "
)


class PromptAnswer(msgspec.Struct):
    """What the model must answer; a missing reason is accepted."""

    ok: bool
    reason: str = ""
    impossible: bool = False


class PromptRunner(ServiceRunner):
    """Asks the session's model, or the one the hook names."""

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Ask once; an answer that cannot be understood is a failure."""
        action = hook.action
        assert isinstance(action, Prompt)
        judge = self._services().judge
        if judge is None:
            raise missing("a model", "judge")
        text = await judge(question(action, event))
        answer = understand(text)
        return RunnerResult(reply=consequence(answer, action, event), stdout=text)


class AgentRunner(ServiceRunner):
    """Hands the question to the host's agent, which may use the session's tools."""

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Let the agent look; no answer is a failure."""
        action = hook.action
        assert isinstance(action, AgentCheck)
        inspector = self._services().inspector
        if inspector is None:
            raise missing("an agent", "inspector")
        answer = await inspector(question(action, event))
        if answer is None:
            raise HookFailed("got no answer from its agent")
        return RunnerResult(reply=_check_consequence(understand(answer), event))


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
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        raise HookFailed(
            f"got an answer from its model that is not `{{ok, reason}}`: {problem}", stdout=str(answer)
        ) from None


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
