"""Tools that live in the host."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.errors import HookError
from hookline.hosts.claude_code.mcp import Bridged, InProcess, ToolServer, in_process, tool


@tool
async def greet(name: str, times: int = 1) -> str:
    """Say hello."""
    return ", ".join([f"hello {name}"] * times)


@tool(name="raw", description="Blocks.")
def blocks(what: Any) -> Any:
    return what


@tool
def fails() -> None:
    """Always."""
    raise ZeroDivisionError("oops")


async def rpc(server: InProcess, method: str, **params: Any) -> Any:
    return await server.handle({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})


def test_a_function_becomes_a_tool() -> None:
    """Its type hints are the schema, its docstring the description."""
    assert (greet.name, greet.description) == ("greet", "Say hello.")
    assert greet.input_schema["properties"] == {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}}
    assert greet.input_schema["required"] == ["name"]
    assert (blocks.name, blocks.description) == ("raw", "Blocks.")


def test_a_tool_takes_named_arguments_only() -> None:
    """What a model cannot fill in is refused early."""
    with pytest.raises(HookError, match="must have a name"):
        tool(lambda *args: None)


@pytest.mark.parametrize(
    "name, arguments, content, failed",
    [
        ("greet", {"name": "you", "times": 2}, "hello you, hello you", False),
        ("raw", {"what": [{"type": "text", "text": "as it is"}]}, "as it is", False),
        ("raw", {"what": {"a": 1}}, '{"a":1}', False),
        ("raw", {"what": []}, "[]", False),
        ("greet", {"name": 5}, "the arguments do not fit `greet`: Expected `str`, got `int` - at `$.name`", True),
        ("fails", {}, "ZeroDivisionError: oops", True),
        ("nothing", {}, "there is no tool `nothing`", True),
    ],
)
async def test_a_call_is_answered_with_content(name: str, arguments: Any, content: str, failed: bool) -> None:
    """A tool's failure is a result the model can read, never an exception."""
    server = ToolServer([greet, blocks, fails])

    answer = await rpc(server, "tools/call", name=name, arguments=arguments)

    assert answer == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"content": [{"type": "text", "text": content}], "isError": failed},
    }


async def test_the_handshake_is_answered_and_notifications_are_not() -> None:
    """initialize, ping and tools/list; an unknown method is a JSON-RPC error."""
    server = ToolServer([greet], name="mine")

    hello = await rpc(server, "initialize", protocolVersion="2025-03-26")

    assert hello["result"]["protocolVersion"] == "2025-03-26"
    assert hello["result"]["serverInfo"]["name"] == "mine"
    assert (await rpc(server, "ping"))["result"] == {}
    assert (await rpc(server, "resources/list"))["error"]["code"] == -32601
    assert await server.handle({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None


async def test_a_server_of_the_official_package_works_in_the_same_place() -> None:
    """Its own machinery answers; we only carry the messages."""
    mcp = pytest.importorskip("mcp.server")
    made = getattr(mcp, "MCPServer", None) or pytest.importorskip("mcp.server.fastmcp").FastMCP
    official = made("official")

    @official.tool()  # type: ignore[untyped-decorator]
    async def double(n: int) -> str:
        """Twice."""
        return str(2 * n)

    server = in_process(official)
    assert isinstance(server, Bridged)
    client = {"name": "c", "version": "1"}
    hello = await rpc(server, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    await server.handle({"jsonrpc": "2.0", "method": "notifications/initialized"})
    called = await rpc(server, "tools/call", name="double", arguments={"n": 4})
    await server.aclose()

    assert hello["result"]["serverInfo"]["name"] == "official"
    assert called["result"]["content"][0]["text"] == "8"


def test_a_configuration_is_not_a_server() -> None:
    """A mapping goes to the CLI as it is, unless it carries a live server, as the official SDK's do."""
    server = ToolServer([])

    assert in_process({"command": "npx"}) is None
    assert in_process({"type": "sdk", "name": "x", "instance": server}) is server
