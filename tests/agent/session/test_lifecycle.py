"""seeds/003 §7: one session through every event of the lifecycle, in that order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import Command, HookEvent, Hooks, context, deny, keep_going
from hookline.agent import PermissionQuestion
from hookline.core.engine import Context
from hookline.events import Event, Notification, PreToolUse, Setup, Stop
from hookline.guards.permissions import read_rules
from hookline.replies import Reply
from tests.agent.driving import agent_on, bash, reminders, requests_of

# what seeds/003 §7 draws, from top to bottom; in [brackets] what today's wire format adds between
LIFECYCLE = """
    SessionStart:startup
    UserPromptSubmit
    PreToolUse:Bash PostToolUse:Bash [PostToolBatch]
    PreToolUse:Bash [PostToolBatch]
    PreToolUse:Bash PostToolUseFailure:Bash [PostToolBatch]
    PreToolUse:Write [PermissionRequest:Write] Notification:permission_prompt PostToolUse:Write [PostToolBatch]
    PreToolUse:Agent
    SubagentStart:general-purpose PreToolUse:Bash PostToolUse:Bash [PostToolBatch] SubagentStop:general-purpose
    PostToolUse:Agent [PostToolBatch]
    PreCompact:auto [SubagentStop] SessionStart:compact [PostCompact:auto]
    [MessageDisplay] Stop
    [MessageDisplay] Stop
    UserPromptSubmit
    PreToolUse:TaskCreate [TaskCreated] PostToolUse:TaskCreate [PostToolBatch]
    PreToolUse:Agent PostToolUse:Agent [PostToolBatch]
    [MessageDisplay] Stop
    UserPromptSubmit [MessageDisplay] Stop
    SessionEnd:other
"""
# the same of a teammate, which works meanwhile: its prompt, its task, and nothing more to do
TEAMMATE = """
    SubagentStart:general-purpose
    SubagentStop:general-purpose
    SubagentStop:general-purpose
    TaskCompleted
    TeammateIdle
"""

LANES = {
    "summary": {"last": "create a detailed summary", "turns": [{"text": "<summary>SO FAR</summary>"}]},
    "sub": {"first": "^SUB", "turns": [bash("true"), {"text": "sub answer"}]},
    "mate": {"first": "^MATE", "turns": [{"text": "ready"}, {"text": "did it"}]},
}
FIRST_PROMPT: list[Any] = [
    bash("true"),
    bash("echo forbidden"),
    bash("exit 3"),
    {"tools": [["Write", {"file_path": "out.txt", "content": "x"}]]},
    {
        "tools": [["Agent", {"description": "d", "prompt": "SUB", "run_in_background": False}]],
        "usage": {"input_tokens": 5000},
    },
    "finished",
    "really finished",
]
SECOND_PROMPT: list[Any] = [
    {"tools": [["TaskCreate", {"subject": "S", "description": "D"}]]},
    {"tools": [["Agent", {"description": "d", "prompt": "MATE", "name": "ann"}]]},
    "the team is at work",
    "heard of it",
]


class Recorder:
    """Every event and what it is about, in order, with whose it is."""

    def __init__(self, hooks: Hooks) -> None:
        self.seen: list[tuple[str | None, str]] = []
        hooks.add(*HookEvent, self.take_note, rejudge=False, name="recorder", priority=1000)

    async def take_note(self, event: Event) -> None:
        about = f":{event.subject}" if event.subject else ""
        self.seen.append((event.agent_id, event.event_name + about))

    def split(self) -> tuple[list[str], list[str]]:
        """The teammate's events, and all others."""
        mate = next(owner for owner, name in self.seen if name == "TeammateIdle")
        return [name for owner, name in self.seen if owner == mate], [
            name for owner, name in self.seen if owner != mate
        ]


async def test_one_session_passes_every_event_in_the_order_of_the_lifecycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that are allowed, denied, failed and asked about; a subagent, compaction, a teammate; from start to end."""
    monkeypatch.setattr("hookline.agent.tool_calls.PATIENCE", 0.01)
    hooks, notified = Hooks(), asyncio.Event()
    recorder = Recorder(hooks)
    sent_back: list[Event] = []

    @hooks.on(PreToolUse, match="Bash")
    async def forbid(event: PreToolUse) -> Reply | None:
        return deny("forbidden") if "forbidden" in event.tool_input["command"] else None

    @hooks.on(Notification)
    async def call_the_user(event: Notification) -> None:
        notified.set()

    @hooks.on(Stop)
    async def once_more(event: Stop) -> Reply | None:
        sent_back.append(event)
        return keep_going("look again") if len(sent_back) == 1 else None

    async def slow_user(ask: PermissionQuestion) -> bool:
        await notified.wait()
        return True

    rules = read_rules({}, allowed=["Bash", "Agent", "TaskCreate"])
    turns = [*FIRST_PROMPT, *SECOND_PROMPT]
    options: dict[str, Any] = {"rules": rules, "can_use_tool": slow_user, "compact_at": 4000}
    async with agent_on(tmp_path, *turns, hooks=hooks, lanes=LANES, **options) as agent:
        await agent.run("go")
        await agent.run("go on")
        await agent.background()

    teammate, others = recorder.split()
    assert others == _names(LIFECYCLE)
    assert teammate == _names(TEAMMATE)


def _names(drawn: str) -> list[str]:
    return drawn.replace("[", "").replace("]", "").split()


async def test_setup_context_reaches_the_first_request(tmp_path: Path) -> None:
    """As seeds/003 says; a command in Claude Code's dialect tells the user, as it does there (`setup_text`)."""
    printed = '{"hookSpecificOutput": {"hookEventName": "Setup", "additionalContext": "%s"}}'
    hooks = Hooks()
    hooks.on(Setup)(lambda event: context("FROMPYTHON"))
    for dialect in ("spec", "claude"):
        hooks.add(Setup, Command(command=f"printf '{printed % dialect.upper()}'", dialect=dialect), name=dialect)

    async with agent_on(tmp_path, "done", hooks=hooks, setup="init") as agent:
        await agent.run("go")
        told = "\n".join(reminders(requests_of(agent)[0]))

    assert [word in told for word in ("FROMPYTHON", "SPEC", "CLAUDE")] == [True, True, False]


async def test_a_hook_that_an_interrupt_ends_is_told_so(tmp_path: Path) -> None:
    """`ctx.cancelled` is set inside the hook, whether the agent is interrupted or its task is cancelled."""
    for how in ("interrupt", "cancel"):
        hooks, begun, seen = Hooks(), asyncio.Event(), list[bool]()

        @hooks.on(PreToolUse)
        async def slow(event: PreToolUse, ctx: Context, begun: asyncio.Event = begun, seen: list[bool] = seen) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(ctx.cancelled.is_set())

        async with agent_on(tmp_path, bash("true"), "done", hooks=hooks) as agent:
            work = asyncio.create_task(agent.run("go"))
            await begun.wait()
            _ = agent.interrupt() if how == "interrupt" else work.cancel()
            await asyncio.wait([work])

        assert seen == [True], how
