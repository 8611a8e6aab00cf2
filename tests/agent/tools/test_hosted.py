"""MCP servers that live in the host: called through questions to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hookline.agent.tools import ToolEnv, ToolResult
from hookline.agent.tools.mcp import McpServers, McpTool, ServerConfig
from hookline.errors import HostGone, RequestRefused
from hookline.hosts.claude_code import ToolServer, tool


class Host:
    """A host with one server, whose tool answers once two calls are there; it may break or leave."""

    def __init__(self) -> None:
        self.problem: Exception | None = None
        self.waiting = 0
        self._both = asyncio.Event()
        self._server = ToolServer([tool(name="meet")(self._meet)])

    async def ask(self, server: str, message: dict[str, Any]) -> dict[str, Any] | None:
        if self.problem is not None:
            raise self.problem
        return await self._server.handle(message)

    async def _meet(self, text: str) -> str:
        """Wait for the other one."""
        self.waiting += 1
        if self.waiting == 2:
            self._both.set()
        await self._both.wait()
        return text.upper()


@asynccontextmanager
async def connected(host: Host) -> AsyncIterator[tuple[McpServers, dict[str, McpTool]]]:
    servers = McpServers({"srv": ServerConfig(type="sdk")})
    try:
        assert await servers.connect() == {}
        yield servers, await servers.connect_hosted(host.ask)
    finally:
        await servers.aclose()


async def test_calls_to_a_server_in_the_host_may_overlap(env: ToolEnv) -> None:
    """Two calls at once are two questions at once, each with its own answer."""
    async with asyncio.timeout(30), connected(Host()) as (servers, tools):
        meet = tools["mcp__srv__meet"]
        said = await asyncio.gather(meet.run({"text": "a"}, env), meet.run({"text": "b"}, env))
        statuses = servers.statuses()

    assert [*said] == [ToolResult([{"type": "text", "text": word}], [{"type": "text", "text": word}]) for word in "AB"]
    assert statuses == [{"name": "srv", "status": "connected"}]


async def test_a_server_that_only_the_host_names_is_connected_too() -> None:
    """A host may say in `initialize` which servers it has; the configuration need not."""
    servers = McpServers({})
    try:
        tools = await servers.connect_hosted(Host().ask, ["other"])
    finally:
        await servers.aclose()

    assert list(tools) == ["mcp__other__meet"]


@pytest.mark.parametrize("problem", [HostGone(), RequestRefused("host", "no such server", None)])
async def test_a_host_that_cannot_answer_is_a_result_the_model_can_read(env: ToolEnv, problem: Exception) -> None:
    """The call fails at once, and says why."""
    host = Host()
    async with asyncio.timeout(30), connected(host) as (_, tools):
        host.problem = problem
        said = await tools["mcp__srv__meet"].run({"text": "a"}, env)

    assert said.is_error
    assert str(problem) in str(said.content)
