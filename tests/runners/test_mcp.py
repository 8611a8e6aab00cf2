"""A tool of an MCP server answers (FACTS §8)."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, McpTool, Reply, Verdict, deny
from hookline.agent.hook_services import mcp_caller
from hookline.agent.tools import SessionState, ToolEnv
from hookline.agent.tools.mcp import McpServers, read_config
from hookline.core.engine import Status
from hookline.errors import HookFailed
from hookline.events import PreToolUse, UserPromptSubmit
from hookline.events.base import Event
from hookline.runners import McpResult, Services
from hookline.runners.prompt import filled

BASH = PreToolUse(session_id="s1", cwd="/p", tool_name="Bash", tool_input={"command": "ls", "n": [1, {"deep": "x"}]})
DENY = json.dumps({
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "no",
    }
})  # fmt: skip


async def call(who: Any, event: Event = BASH, action: McpTool | None = None, **options: Any) -> Verdict:
    async with Hooks() as hooks:
        hooks.services = Services(mcp=who)
        hooks.add(type(event), action or McpTool(server="srv", tool="echo"), name="it", **options)
        return await hooks.fire(event)


def gives(text: str, *, error: bool = False) -> Any:
    async def answer(server: str, tool: str, arguments: Mapping[str, Any]) -> McpResult:
        return McpResult(text, error)

    return answer


@pytest.mark.parametrize(
    "text, event, reply",
    [
        (DENY, BASH, deny("no")),
        (f"\n {DENY} ", BASH, deny("no")),
        ("", BASH, Reply()),
        ("plain words", BASH, Reply()),
        ("plain words", UserPromptSubmit(prompt="p"), Reply()),
        ("{}", BASH, Reply()),
    ],
)
async def test_the_text_is_read_like_stdout_but_never_context(text: str, event: Event, reply: Reply) -> None:
    """JSON is an answer, plain text says nothing."""
    outcome = (await call(gives(text), event)).outcomes[0]

    assert (outcome.status, outcome.reply, outcome.stdout) == (Status.OK, reply, text)


@pytest.mark.parametrize(
    "who, said",
    [
        (gives("went wrong", error=True), "asked tool `echo` of `srv`, which failed: went wrong"),
        (gives(DENY, error=True), "asked tool `echo` of `srv`, which failed"),
        (gives('{"decision": 7}'), "decision"),
        (gives('{"decision"'), "JSON"),
        (None, "needs MCP servers, and this set of hooks has none; set `hooks.services.mcp`"),
    ],
)
@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_failures(who: Any, said: str, policy: Any) -> None:
    """A tool error, half an answer, nobody to call: `on_failure` decides what follows."""
    verdict = await call(who, on_failure=policy)

    assert verdict.outcomes[0].status is Status.FAILED
    assert said in (verdict.outcomes[0].error or "")
    assert verdict.blocked is (policy == "block")


def test_what_is_filled_in() -> None:
    """Paths into the event, in every text at any depth; what is not there becomes nothing."""
    event = {"tool_input": {"command": "ls", "n": 7, "list": ["a"], "ok": True}, "cwd": "/p"}

    assert filled("${tool_input.command} in ${cwd}", event) == "ls in /p"
    assert filled({"a": ["${tool_input.n}", {"b": "${tool_input.list}"}], "c": 1}, event) == {
        "a": ["7", {"b": '["a"]'}], "c": 1
    }  # fmt: skip
    assert filled("[${tool_input.gone}${gone.too}${cwd.deeper}]", event) == "[]"
    assert filled("${tool_input.ok} $cwd ${} ${a b}", event) == "true $cwd ${} ${a b}"


async def test_a_value_is_not_filled_in_twice() -> None:
    """What a tool's input says is text, also when it looks like a placeholder."""
    seen: list[Mapping[str, Any]] = []

    async def remember(server: str, tool: str, arguments: Mapping[str, Any]) -> McpResult:
        seen.append(arguments)
        return McpResult("")

    event = PreToolUse(tool_name="Bash", tool_input={"command": "${session_id}"}, session_id="secret")
    await call(remember, event, McpTool(server="s", tool="t", input={"text": "${tool_input.command}"}))

    assert seen == [{"text": "${session_id}"}]


@asynccontextmanager
async def connected(contract: Path, folder: Path) -> AsyncIterator[Any]:
    """A real MCP server on stdio, through the agent's own connections."""
    config = {"mcpServers": {"srv": {"command": sys.executable, "args": [str(contract / "mcp_server.py")]}}}
    servers, state = McpServers(read_config(json.dumps(config))), SessionState(str(folder))
    await servers.connect()
    try:
        yield mcp_caller(lambda: servers, lambda: ToolEnv(state=state))
    finally:
        await servers.aclose()


async def test_a_real_server(contract: Path, tmp_path: Path) -> None:
    """Its tool echoes the event's own words; its failing tool and a server that there is not are failures."""
    said = DENY.replace('"no"', '"${tool_input.command} is not for you"')
    async with connected(contract, tmp_path) as who:
        echoed = await call(who, action=McpTool(server="srv", tool="echo", input={"text": said}))
        failed = await call(who, action=McpTool(server="srv", tool="fail", input={"text": "x"}), on_failure="block")
        nobody = await call(who, action=McpTool(server="other", tool="echo"), on_failure="continue")

    assert echoed.reason == "ls is not for you"
    assert failed.outcomes[0].status is Status.FAILED
    assert failed.blocked
    assert "no MCP server `other` is connected" in (nobody.outcomes[0].error or "")
    assert not nobody.blocked


async def test_what_the_caller_raises_is_the_failure() -> None:
    """In its own words."""

    async def refuse(server: str, tool: str, arguments: Mapping[str, Any]) -> McpResult:
        raise HookFailed("no MCP server `srv` is connected")

    assert (await call(refuse, on_failure="continue")).outcomes[0].error == "no MCP server `srv` is connected"
