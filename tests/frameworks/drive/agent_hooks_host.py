"""`HooklineInterceptor` in a host of AGENT-HOOKS, the kit's reference agent: what came of each run."""

import asyncio
from collections.abc import Callable
from typing import Any

from agent_hooks import EnforcementMode
from agent_hooks._types import Verdict
from agent_hooks.approval import ApprovalOutcome, ApprovalResolution
from agent_hooks.composition import CompositionConfig
from agent_hooks.ctk.harness import Scenario
from agent_hooks.ctk.reference import ReferenceHarness

from hookline import Hooks, ask, context, deny, replace_output, rewrite
from hookline.events import PostToolUse, PreOutput, PreToolUse, UserPromptSubmit
from hookline.frameworks.agent_hooks import HooklineInterceptor

SCENARIO = {
    "input": {"content": "hello", "role": "user"},
    "tools": [{"name": "shell", "behavior": [{"return": "out"}]}],
    "model_script": [
        {"respond": {"content": None, "tool_calls": [{"id": "t1", "name": "shell", "args": {"command": "ls"}}],
                     "finish_reason": "tool_calls"}},
        {"respond": {"content": "done", "tool_calls": [], "finish_reason": "stop"}},
    ],
}  # fmt: skip


class Approver:
    """Approves whatever it is asked."""

    def resolve(self, request: Any) -> ApprovalResolution:
        return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, Verdict.allow())


def boom(event: Any) -> Any:
    raise RuntimeError("boom")


async def play(kind: Any, answer: Any, resolver: Any = None, mode: str = "enforce") -> dict[str, Any]:
    hooks = Hooks()

    @hooks.on(kind)
    async def judge(event: Any) -> Any:
        return answer(event) if callable(answer) else answer

    harness = ReferenceHarness()
    harness.setup(
        Scenario.from_wire(SCENARIO), [HooklineInterceptor(hooks)], resolver, EnforcementMode(mode),
        CompositionConfig.default(), "jcs-sha256",
    )  # fmt: skip
    record = await harness.run()
    denied = [one["verdict"].get("message") for one in record.records if one["verdict"]["decision"] == "deny"]
    warned = [w["message"] for one in record.records for w in one["verdict"].get("warnings", ())]
    calls = [call["args"]["command"] for call in record.tool_invocations]
    return {
        "outcome": record.outcome.value,
        "final": record.final_output,
        "calls": calls,
        "denied": denied,
        "warned": warned,
    }


RUNS: dict[str, tuple[Any, ...]] = {
    "nothing": (PreToolUse, None),
    "deny": (PreToolUse, deny("NO_X")),
    "raises": (PreToolUse, boom),
    "rewrite": (PreToolUse, rewrite({"command": "ls -la"})),
    "context": (PreToolUse, context("CTX_X")),
    "replace": (PostToolUse, replace_output("NEW_X")),
    "prompt": (UserPromptSubmit, deny("NO_X")),
    "output": (PreOutput, replace_output("FINAL_X")),
    "ask_nobody": (PreToolUse, ask("WHY_X")),
    "ask_resolver": (PreToolUse, ask("WHY_X"), Approver()),
    "deny_resolver": (PreToolUse, deny("NO_X"), Approver()),
    "evaluate_only": (PreToolUse, deny("NO_X"), None, "evaluate_only"),
}


def case(given: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: asyncio.run(play(*given))


CASES = {name: case(given) for name, given in RUNS.items()}
