"""A loop of one's own, and the official MCP client: every form of a call is judged, and its result told."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from hookline import Hooks, Reply, ask, context, deny, replace_output, rewrite
from hookline.events import PostToolUse, PostToolUseFailure, PreToolUse
from hookline.frameworks.loops import ajudge, judge
from hookline.mcp import guard

CALLS: dict[str, Any] = {
    "anthropic": {"type": "tool_use", "id": "1", "name": "shell", "input": {"command": "rm"}},
    "anthropic object": SimpleNamespace(type="tool_use", id="1", name="shell", input={"command": "rm"}),
    "chat": {"id": "1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "rm"}'}},
    "chat object": SimpleNamespace(id="1", function=SimpleNamespace(name="shell", arguments='{"command": "rm"}')),
    "responses": {
        "type": "function_call",
        "call_id": "1",
        "id": "x",
        "name": "shell",
        "arguments": '{"command": "rm"}',
    },
}


@pytest.mark.parametrize("form", sorted(CALLS))
async def test_every_form_of_a_call_is_read(form: str) -> None:
    hooks = Hooks()

    @hooks.on(PreToolUse, match="shell")
    def no_rm(event: PreToolUse) -> Reply | None:
        return deny("no") if event.tool_input["command"] == "rm" else None

    for call in (judge(hooks, CALLS[form]), await ajudge(hooks, CALLS[form])):
        assert (call.id, call.name, call.refused) == ("1", "shell", "`shell` was denied: no")


@pytest.mark.parametrize("call", [
    {"name": "shell", "arguments": "[1]"}, {"name": "", "input": {}}, {"input": {}}, {"name": "x", "input": [1]}, {}, 7,
])  # fmt: skip
def test_what_is_no_call_is_refused(call: Any) -> None:
    assert judge(Hooks(), call).refused is not None


def test_a_text_of_a_custom_tool_is_its_input() -> None:
    seen = []
    hooks = Hooks()

    @hooks.on(PreToolUse)
    def look(event: PreToolUse) -> None:
        seen.append(dict(event.tool_input))

    assert judge(hooks, {"name": "patch", "input": "*** Begin"}).refused is None
    assert seen == [{"input": "*** Begin"}]


async def test_results_are_told_and_changed() -> None:
    hooks = Hooks()
    seen: list[tuple[str, Any]] = []

    @hooks.on(PreToolUse)
    def change(event: PreToolUse) -> Reply:
        return rewrite({"n": 2}) | context("first")

    @hooks.on(PostToolUse)
    def after(event: PostToolUse) -> Reply:
        seen.append(("ok", event.tool_response))
        return replace_output("hidden") | context("second")

    @hooks.on(PostToolUseFailure)
    def broken(event: PostToolUseFailure) -> None:
        seen.append(("failed", event.error))

    call = judge(hooks, {"name": "t", "input": {"n": 1}})
    assert dict(call.arguments) == {"n": 2}
    assert call.finish("plain") == "hidden\n\nfirst\n\nsecond"
    assert call.fail(ValueError("no")).startswith("no")
    waiting = await ajudge(hooks, {"name": "t", "input": {"n": 1}})
    assert await waiting.afinish("plain") == "hidden\n\nfirst\n\nsecond"
    assert (await waiting.afail("late")).startswith("late")
    assert [kind for kind, _ in seen] == ["ok", "failed", "ok", "failed"]


def test_an_ask_is_answered_by_on_ask() -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda event: ask("sure?"))
    assert judge(hooks, {"name": "t", "input": {}}).refused is not None
    assert judge(hooks, {"name": "t", "input": {}}, on_ask=lambda verdict: True).refused is None


SERVER = """
from mcp.server import MCPServer
server = MCPServer("here")
@server.tool()
def add(a: int, b: int) -> int:
    return a + b
@server.tool()
def fail() -> str:
    raise ValueError("broken")
server.run()
"""


async def test_the_official_client_is_guarded() -> None:
    """On a real server: denied calls do not reach it, rewritten ones do, results are replaced, failures told."""
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import stdio_client

    hooks = Hooks()
    seen: list[str] = []

    @hooks.on(PreToolUse, match="mcp__here__add")
    def limit(event: PreToolUse) -> Reply | None:
        if event.tool_input["a"] > 100:
            return deny("too much")
        return rewrite({"a": 1, "b": 1}) if event.tool_input["b"] == 0 else None

    @hooks.on(PostToolUse, match="mcp__here__add")
    def hide(event: PostToolUse) -> Reply | None:
        seen.append(str(event.tool_response))
        return replace_output({"result": 0}) if event.tool_response == {"result": 7} else None

    @hooks.on(PostToolUseFailure)
    def told(event: PostToolUseFailure) -> None:
        seen.append(event.error)

    parameters = mcp.StdioServerParameters(command=sys.executable, args=["-c", SERVER])
    async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:
        guard(session, hooks, server="here")
        await session.initialize()
        refused = await session.call_tool("add", {"a": 101, "b": 1})
        assert refused.is_error
        assert "too much" in refused.content[0].text
        assert seen == []
        assert (await session.call_tool("add", {"a": 5, "b": 0})).structured_content == {"result": 2}
        assert (await session.call_tool("add", {"a": 3, "b": 4})).structured_content == {"result": 0}
        assert (await session.call_tool("fail", {})).is_error
    assert seen[:2] == ["{'result': 2}", "{'result': 7}"]
    assert "fail" in seen[2]
