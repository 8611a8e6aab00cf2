"""The harness through which the AGENT-HOOKS conformance kit drives Hookline's agent.

Nothing here judges: the agent's own loop fires its events, and `Interceptions` hands them to the kit's interceptors.

    python -m pytest -c /dev/null --noconftest --rootdir . tests/frameworks/vectors.py \\
        --agent-hooks-harness=tests.frameworks.conformance:HooklineHarness
"""

from __future__ import annotations

import json
import tempfile
from typing import Any, ClassVar

from agent_hooks import InterceptionEmitter
from agent_hooks.ctk.harness import Capability, RunOutcome, RunRecord, Scenario, ToolSpec
from agent_hooks.ctk.reference import ReferenceHarness

from hookline import Hooks
from hookline.agent.agent import Agent
from hookline.agent.messages import Assistant, Text, ToolUse
from hookline.agent.models import ModelRequest
from hookline.agent.models.base import ToolSpec as Offered
from hookline.agent.tools.base import Tool, ToolEnv, ToolResult
from hookline.errors import AgentError
from hookline.frameworks.agent_hooks import Interceptions


class ScriptedModel:
    """Gives the vector's answers, one after another."""

    name = "mock"

    def __init__(self, scenario: Scenario) -> None:
        self._script = iter(scenario.model_script)

    async def respond(self, request: ModelRequest, on_event: Any = None) -> Assistant:
        answer = next(self._script)
        uses = [ToolUse(call["id"], call["name"], dict(call["args"])) for call in answer.tool_calls]
        text = [Text(answer.content)] if answer.content else []
        reason = "tool_use" if uses else "end_turn"
        return Assistant((*text, *uses), id="m", model="mock", stop_reason=reason)


class MockTool(Tool):
    """A tool of a vector: it returns what the vector says, and remembers its calls."""

    def __init__(self, spec: ToolSpec, log: list[dict[str, Any]]) -> None:
        self._spec, self._log = spec, log
        self.name = spec.name  # type: ignore[misc]
        self.description = spec.name  # type: ignore[misc]

    @property
    def spec(self) -> Offered:
        return Offered(self.name, self.description, {"type": "object"})

    def validate(self, given: Any) -> dict[str, Any]:
        return dict(given)

    def rewritten(self, given: dict[str, Any]) -> dict[str, Any]:
        return dict(given)

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        value, is_error = self._spec.invoke(given)
        self._log.append({"name": self.name, "args": dict(given)})
        return ToolResult(value if isinstance(value, str) else json.dumps(value), value, is_error)


class HooklineHarness(ReferenceHarness):
    """Hookline's agent as the host; how a vector's configuration becomes an emitter is the kit's own code."""

    name = "hookline"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({
        Capability.MODEL_CALLS, Capability.TOOL_CALLS, Capability.INT64_JSON, Capability.BIGINT_JSON,
        Capability.HOST_DECLARATION,
    })  # fmt: skip

    def declaration(self) -> dict[str, Any]:
        document: dict[str, Any] = super().declaration()
        document["id"] = "hookline"
        document["host"] = {"name": "hookline", "version": "0.1.0"}
        return document

    def _start(self, scenario: Scenario, emitter: InterceptionEmitter) -> None:
        self._scenario, self._emitter = scenario, emitter
        self._tool_log: list[dict[str, Any]] = []

    async def run(self) -> RunRecord:
        scenario, emitter = self._scenario, self._emitter
        assert scenario is not None
        assert emitter is not None
        hooks = Hooks()
        hooks.add(Interceptions(emitter, tools=scenario.tools))
        tools = {name: MockTool(spec, self._tool_log) for name, spec in scenario.tools.items()}
        outcome, final = RunOutcome.COMPLETED, None
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(
                model=ScriptedModel(scenario), hooks=hooks, tools=tools, cwd=folder, environ={"HOME": folder},
                permission_mode="bypassPermissions", instructions=frozenset(), persist=False,
            )  # fmt: skip
            try:
                async with agent:
                    result = await agent.run(scenario.input["content"])
            except AgentError:
                outcome = RunOutcome.BLOCKED
            else:
                blocked = result.is_error or result.reason != "completed"
                outcome, final = (RunOutcome.BLOCKED, None) if blocked else (RunOutcome.COMPLETED, result.text)
        await hooks.aclose()
        return RunRecord(
            outcome=outcome,
            final_output=final,
            tool_invocations=list(self._tool_log),
            identities=[(record.input_identity, record.enforced_identity) for record in emitter.results],
            records=[record.to_wire() for record in emitter.results],
        )

    def teardown(self) -> None:
        self._scenario = self._emitter = None
