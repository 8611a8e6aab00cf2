"""Tools of MCP servers that live in the host: connected once it has introduced itself, there before the first turn."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import Raw

from hookline.agent.factory import AgentBundle
from hookline.agent.hook_services import agent_services
from hookline.agent.tools.mcp import McpServers
from hookline.guards.permissions import removed_tools
from hookline.hosts.claude_code.cli_channel import CliChannel
from hookline.hosts.claude_code.messages import McpMessage


class HostTools:
    """Connects to the host's servers; a host that says nothing of them has those of `--mcp-config`."""

    def __init__(self, made: AgentBundle, server: CliChannel) -> None:
        self._made, self._server = made, server
        self._connecting: asyncio.Task[None] | None = None

    def begin(self, names: Collection[str] = ()) -> None:
        """Begin to connect; the host goes on meanwhile. A host that introduces itself again changes nothing here."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(names), name="mcp servers in the host")

    async def ready(self) -> None:
        """Wait until every server has answered or failed."""
        self.begin()
        assert self._connecting is not None
        await self._connecting

    async def _connect(self, names: Collection[str]) -> None:
        made = self._made
        if made.servers is None:
            if not names:
                return
            made.servers = McpServers({})
        session = made.agent.session
        found = await made.servers.connect_hosted(self._ask, names)
        gone = removed_tools(session.policy.rules, found)
        session.tools |= {name: tool for name, tool in found.items() if name not in gone}
        made.hooks.services = agent_services(session, made.agent.conversation, made.servers)
        for name, problem in made.servers.failures.items():
            made.agent.output.inform(f"MCP server `{name}`: {problem}", level="warning")

    async def _ask(self, server: str, message: dict[str, Any]) -> dict[str, Any] | None:
        answer = await self._server.ask(McpMessage(server_name=server, message=Raw(msgspec.json.encode(message))))
        told = answer.get("mcp_response") if isinstance(answer, dict) else None
        return told if isinstance(told, dict) else None
