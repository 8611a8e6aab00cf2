"""What hooks need from a host when no agent runs: a model to ask, MCP servers to call. Connected only if needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hookline.api import Hooks
from hookline.core.hooks import AgentCheck, McpTool, Prompt


@asynccontextmanager
async def hosted(hooks: Hooks, *, model: str | None, mcp_config: str | None, cwd: str) -> AsyncIterator[None]:
    """Give the hooks what their kinds need, for as long as this lasts."""
    kinds = {type(hook.action) for hook in hooks.hooks}
    if not kinds & {Prompt, AgentCheck, McpTool}:
        yield
        return
    from hookline.agent.hook_services import services

    async with services(model=model, mcp_config=mcp_config, cwd=cwd) as found:
        hooks.services = found
        yield
