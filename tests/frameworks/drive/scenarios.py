"""What is tried on every framework: hooks, what the scripted model says, and what came of it as plain facts.

A turn of the model is a text, `("tool", {"command": …})`, a list of such calls to be made at once, or an exception it
raises. Each framework's module has one function, `run(turns, prompt, hooks, …) -> Seen`, which builds a real agent
around them.
"""

import asyncio
import functools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookline import Hooks, allow, ask, context, deny, keep_going, replace_output, rewrite, stop
from hookline.events import CATALOG, PostToolUse, PreToolUse, SessionStart, Stop, SubagentStart, UserPromptSubmit

Call = tuple[str, dict[str, Any]]
Turn = str | Call | list[Call] | Exception
LS: Call = ("shell", {"command": "ls"})
RM: Call = ("shell", {"command": "rm -rf /"})
FAILS: Call = ("shell", {"command": "fail"})
DELEGATES: Call = ("delegate", {"command": "x"})


def calls_of(turn: Any) -> list[Call]:
    """The calls of a turn that is not a text."""
    return turn if isinstance(turn, list) else [turn]


KEPT = (
    "session_id", "cwd", "agent_id", "agent_type", "tool_name", "tool_input", "tool_use_id", "tool_response", "prompt",
    "error", "last_assistant_message", "stop_hook_active", "source",
)  # fmt: skip
"""The fields of events that are reported."""


@dataclass
class Seen:
    """What one run showed: the commands that ran, each of the model's requests as text, its answer or its error."""

    calls: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    answer: str = ""
    error: str = ""

    def shell(self, command: str) -> str:
        """What the framework's tool does."""
        self.calls.append(command)
        if command == "fail":
            raise ValueError("the disk is full")
        return f"out:{command}"


@dataclass
class Scenario:
    """Hooks, and a script for the model."""

    hooks: Callable[[Hooks], Any]
    turns: list[Turn]
    prompt: str = "hello"
    on_ask: Any = None
    inner: list[Turn] = field(default_factory=list)
    times: int = 1
    after: Callable[[Hooks], Any] | None = None


def play(run: Any, scenario: Scenario) -> dict[str, Any]:
    """Build the hooks, run the agent, and report."""
    hooks, events = Hooks(), []

    @hooks.on(*CATALOG, rejudge=False, priority=1000)
    async def watch(event: Any) -> None:
        fields = {name: getattr(event, name) for name in KEPT if getattr(event, name, None) is not None}
        events.append({"event": event.event_name, **fields})

    scenario.hooks(hooks)
    seen = Seen()
    for _ in range(scenario.times):
        try:
            run(seen, scenario.turns, scenario.prompt, hooks, on_ask=scenario.on_ask, inner=scenario.inner)
        except Exception as error:
            seen.error = f"{type(error).__name__}: {explained(error)}"
    facts = {
        "calls": seen.calls, "requests": seen.requests, "answer": seen.answer, "error": seen.error, "events": events,
        "cwd": str(Path.cwd()),
    }  # fmt: skip
    return facts if scenario.after is None else {**facts, **scenario.after(hooks)}


def explained(error: Exception) -> str:
    """The error's text, with what the OpenAI SDK keeps beside it."""
    result = getattr(error, "guardrail_result", None)
    return str(error) if result is None else f"{error} {result.output.output_info}"


def before_tool(answer: Any, **options: Any) -> Callable[[Hooks], Any]:
    """A hook that gives this answer before every tool call."""

    def add(hooks: Hooks) -> None:
        @hooks.on(PreToolUse, **options)
        async def judge(event: PreToolUse) -> Any:
            return answer(event) if callable(answer) else answer

    return add


def after_tool(answer: Any) -> Callable[[Hooks], Any]:
    """A hook that gives this answer after every tool call."""

    def add(hooks: Hooks) -> None:
        @hooks.on(PostToolUse)
        def judge(event: PostToolUse) -> Any:
            return answer

    return add


def at(kind: Any, answer: Any) -> Callable[[Hooks], Any]:
    """A hook that gives this answer to one event."""

    def add(hooks: Hooks) -> None:
        @hooks.on(kind)
        def judge(event: Any) -> Any:
            return answer(event) if callable(answer) else answer

    return add


def add_all(*adders: Callable[[Hooks], Any]) -> Callable[[Hooks], Any]:
    """Several hooks."""

    def add(hooks: Hooks) -> None:
        for adder in adders:
            adder(hooks)

    return add


def boom(event: Any) -> Any:
    raise RuntimeError("boom")


def not_twice(event: PreToolUse) -> Any:
    """Refuses what the other hook makes of a call: law 4."""
    return deny("NOT_LONG") if event.tool_input["command"] == "ls -la" else None


def not_rm(event: PreToolUse) -> Any:
    return deny("REASON_X") if event.tool_input["command"].startswith("rm") else None


def stop_at_rm(event: PreToolUse) -> Any:
    return stop("STOP_X") if event.tool_input["command"].startswith("rm") else None


def hangs_on_rm(hooks: Hooks) -> None:
    @hooks.on(PreToolUse, timeout=0.2)
    async def judge(event: PreToolUse) -> Any:
        if event.tool_input["command"].startswith("rm"):
            await asyncio.sleep(60)


def hangs(hooks: Hooks) -> None:
    @hooks.on(PreToolUse, timeout=0.2)
    async def judge(event: PreToolUse) -> Any:
        await asyncio.sleep(60)


def hangs_in_a_thread(hooks: Hooks) -> None:
    @hooks.on(PreToolUse, timeout=0.2)
    def judge(event: PreToolUse) -> Any:
        time.sleep(60)


def close(hooks: Hooks) -> None:
    asyncio.run(hooks.aclose())


def refuses(event: Any) -> Any:
    raise RuntimeError("the phone is dead")


def goes_on_once(event: Stop) -> Any:
    return None if event.stop_hook_active else keep_going("GO_X")


@functools.cache
def audit_folder() -> tempfile.TemporaryDirectory[str]:
    """Of the process that asks for it: with the log's head, and gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="hookline-drive-")


def audit_file() -> Path:
    return Path(audit_folder().name) / "audit.jsonl"


def audited(hooks: Hooks) -> None:
    from hookline.records.audit.log import AuditLog
    from hookline.records.telemetry import Metrics

    hooks.observe(AuditLog(audit_file(), sync="line"), inline=True)
    hooks.observe(Metrics(), inline=True)
    before_tool(lambda event: deny("REASON_X") if "rm" in event.tool_input["command"] else None)(hooks)


def audit_facts(hooks: Hooks) -> dict[str, Any]:
    import msgspec

    lines = [msgspec.json.decode(line) for line in audit_file().read_bytes().splitlines()]
    return {"audit": [{k: line.get(k) for k in ("event", "decision", "tool", "session_id")} for line in lines]}


SCENARIOS = {
    "deny": Scenario(before_tool(deny("REASON_X")), [RM, "done"]),
    "rewrite": Scenario(before_tool(lambda e: rewrite({"command": "ls -la"})), [LS, "done"]),
    "rewrite_judged_again": Scenario(
        add_all(before_tool(not_twice), before_tool(rewrite({"command": "ls -la"}))), [LS, "done"]
    ),
    "replace_result": Scenario(after_tool(replace_output("REPLACED_X")), [LS, "done"]),
    "context_before": Scenario(before_tool(context("CTX_X")), [LS, "done"]),
    "context_after": Scenario(after_tool(context("CTX_X")), [LS, "done"]),
    "object_after": Scenario(after_tool(deny("OBJECTION_X")), [LS, "done"]),
    "deny_prompt": Scenario(at(UserPromptSubmit, deny("REASON_X")), ["done"], prompt="a secret"),
    "deny_some_prompts": Scenario(
        at(UserPromptSubmit, lambda e: deny("REASON_X") if "secret" in e.prompt else None),
        ["done"],
        prompt="the secret",
    ),
    "prompt_context": Scenario(at(UserPromptSubmit, context("CTX_X")), [LS, "done"]),
    "session_context": Scenario(at(SessionStart, context("CTX_X")), ["done"]),
    "deny_session": Scenario(at(SessionStart, deny("REASON_X")), ["done"]),
    "prompt_hook_raises": Scenario(at(UserPromptSubmit, boom), ["done"]),
    "keep_going": Scenario(at(Stop, goes_on_once), ["done", LS, "done2"]),
    "stop_before_tool": Scenario(before_tool(stop("STOP_X")), [LS, "done", "more"]),
    "stop_after_tool": Scenario(after_tool(stop("STOP_X")), [LS, "done", "more"]),
    "hook_raises": Scenario(before_tool(boom), [LS, "done"]),
    "hook_hangs": Scenario(hangs, [LS, "done"]),
    "hook_hangs_in_a_thread": Scenario(hangs_in_a_thread, [LS, "done"]),
    "hook_answers_nonsense": Scenario(before_tool(lambda e: 42), [LS, "done"]),
    "hooks_are_closed": Scenario(close, [LS, "done"]),
    "lenient_hook_raises": Scenario(before_tool(boom, on_failure="continue"), [LS, "done"]),
    "ask_nobody": Scenario(before_tool(ask("WHY_X")), [LS, "done"]),
    "ask_yes": Scenario(before_tool(ask("WHY_X")), [LS, "done"], on_ask=lambda verdict: "WHY_X" in verdict.reason),
    "ask_no": Scenario(before_tool(ask("WHY_X")), [LS, "done"], on_ask=lambda verdict: deny("NOT_TODAY")),
    "ask_fails": Scenario(before_tool(ask("WHY_X")), [LS, "done"], on_ask=refuses),
    "allow": Scenario(before_tool(allow("fine")), [LS, "done"]),
    "session": Scenario(lambda hooks: None, [LS, "done"]),
    "tool_fails": Scenario(lambda hooks: None, [FAILS, "done"]),
    "model_fails": Scenario(lambda hooks: None, [ValueError("model down")]),
    "subagent": Scenario(lambda hooks: None, [DELEGATES, "done"], inner=[LS, "inner done"]),
    "deny_subagent": Scenario(at(SubagentStart, deny("REASON_X")), [DELEGATES, "done"], inner=[LS, "inner done"]),
    "parallel": Scenario(before_tool(not_rm), [[LS, RM, ("shell", {"command": "pwd"})], "done"]),
    "parallel_hang": Scenario(hangs_on_rm, [[RM, LS], "done"]),
    "parallel_stop": Scenario(before_tool(stop_at_rm), [[RM, ("shell", {"command": "rm x"})], "done", "more"]),
    "parallel_rewrite": Scenario(
        before_tool(lambda e: rewrite({"command": e.tool_input["command"] + " -la"})),
        [[LS, ("shell", {"command": "pwd"})], "done"],
    ),
    "parallel_results": Scenario(
        at(PostToolUse, lambda e: context("CTX_" + e.tool_input["command"])),
        [[LS, ("shell", {"command": "pwd"})], "done"],
    ),
    "audit": Scenario(audited, [RM, LS, "done"], after=audit_facts),
}
