"""A small agent looks for itself before it answers ok or not ok (FACTS.md §8)."""

from __future__ import annotations

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.actions import AgentCheck
from hookline.core.hooks.hook import Hook
from hookline.errors import HookFailed
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Reply, deny, keep_going, stop
from hookline.runners.prompt import PromptAnswer, question, understand
from hookline.runners.services import ServiceRunner, missing


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
        return RunnerResult(reply=consequence(understand(answer), event))


def consequence(answer: PromptAnswer, event: Event) -> Reply:
    """Not ok is an ordinary block; where nothing can be blocked it ends the turn."""
    if answer.ok:
        return NOTHING
    reason = f"the agent's check was not met: {answer.reason}"
    spec = spec_of(event)
    if "keep_going" in spec.fields:
        return keep_going(reason)
    return deny(reason) if "deny" in spec.decisions else stop(reason)
