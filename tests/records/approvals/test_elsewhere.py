"""Frameworks, our own agent and the MCP gateway: what they cannot ask by themselves is asked here, and recorded."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from hookline import Hooks, Inbox, ask
from hookline.api import ask_inbox
from hookline.core.engine import Verdict
from hookline.events import PreToolUse
from hookline.frameworks.steps import HookClient
from hookline.records import AuditLog
from tests.agent.driving import agent_on, bash, requests_of
from tests.records.approvals.conftest import Desk, fetch

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        tools = [{"name": "push", "inputSchema": {"type": "object"}}]
        known = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s"}},
                 "tools/list": {"tools": tools}, "tools/call": {"content": [{"type": "text", "text": "PUSHED"}]}}
        found = {"jsonrpc": "2.0", "id": message["id"], "result": known.get(message["method"], {})}
        print(json.dumps(found), flush=True)
"""
HOOKS = """
from hookline import Hooks, ask
from hookline.events import PreToolUse
hooks = Hooks()
hooks.add(PreToolUse, lambda event: ask("pushing is for people"), name="push")
"""


def asking() -> Hooks:
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: ask("pushing is for people"), name="push")
    return hooks


@pytest.mark.parametrize("way", ["on_ask", "settings"])
async def test_a_framework_asks_the_inbox(desk: Desk, tmp_path: Path, way: str) -> None:
    """With `on_ask=Inbox()`, or because the settings have `approvals`; the record says who answered."""
    hooks = asking()
    hooks.observe(AuditLog(tmp_path / "audit.jsonl"))
    if way == "settings":
        hooks.engine.fallback = Hooks.from_settings(tmp_path, home=desk.home).engine.fallback
    run = HookClient(hooks, Inbox() if way == "on_ask" else None).new_run(session_id="s")
    refused = {}
    for number, answer in ((1, "yes"), (2, "no")):
        waiting = asyncio.create_task(run.judge("push", {"to": "main"}))
        await fetch(await desk.link(number), answer)
        refused[answer] = (await waiting).refused
    await hooks.aclose()
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]

    assert refused["yes"] is None
    assert "ada said no (page, question A-" in str(refused["no"])
    answers = [(one["decision"], one.get("approval", {}).get("by")) for one in records if one["event"] == "PreToolUse"]
    assert answers == [("ask", None), ("allow", "ada"), ("ask", None), ("deny", "ada")]


async def test_our_own_agent_asks_the_inbox_where_no_one_is_at_the_terminal(desk: Desk, tmp_path: Path) -> None:
    """A hook's `ask` in a run without a host."""
    hooks = asking()
    hooks.engine.fallback = ask_inbox
    turns = [bash("echo x >> out.txt"), bash("echo y >> out.txt"), "done"]
    async with agent_on(tmp_path, *turns, hooks=hooks) as agent:
        running = asyncio.create_task(agent.run("go"))
        await fetch(await desk.link(1), "yes")
        await fetch(await desk.link(2), "no")
        await running
        read = str(requests_of(agent)[-1].messages)

    assert (tmp_path / "out.txt").read_text() == "x\n"
    assert "ada said no (page, question A-" in read


async def test_without_approvals_a_framework_has_no_one_to_ask(desk: Desk, tmp_path: Path) -> None:
    """As before."""
    (desk.home / ".claude" / "settings.json").write_text("{}")
    hooks = asking()
    hooks.engine.fallback = ask_inbox
    call = await HookClient(hooks).new_run(session_id="s").judge("push", {})

    assert call.refused == "`push` needs approval, and there was no one to ask: pushing is for people"
    assert await ask_inbox(Verdict(PreToolUse(tool_name="push", tool_input={}), ask("x"))) is NotImplemented


async def test_the_gateway_asks_the_inbox_where_the_client_cannot(desk: Desk, tmp_path: Path) -> None:
    """A client without elicitation: a person answers on the page, and the call reaches the server, or does not."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "hooks.py").write_text(HOOKS)
    words = ["-m", "hookline", "mcp", "--name", "git", "--hooks", "hooks.py", "--", sys.executable, "server.py"]
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=tmp_path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert gateway.stdin is not None
    assert gateway.stdout is not None

    async def call(number: int, method: str, **params: object) -> str:
        assert gateway.stdin is not None
        assert gateway.stdout is not None
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        gateway.stdin.write(json.dumps(body).encode() + b"\n")
        return (await gateway.stdout.readline()).decode()

    await call(1, "initialize", protocolVersion="2025-06-18", capabilities={})
    await call(2, "tools/list")
    said = {}
    for number, answer in ((1, "yes"), (2, "no")):
        waiting = asyncio.create_task(call(2 + number, "tools/call", name="push", arguments={"to": "main"}))
        await fetch(await desk.link(number), answer)
        said[answer] = await waiting
    gateway.stdin.close()
    await gateway.wait()

    assert "PUSHED" in said["yes"]
    assert "PUSHED" not in said["no"]
    assert "ada said no (page, question A-" in said["no"]
    assert "(MCP server git)" in desk.messages()[0]["text"]
