"""MCP servers that live in the host (`type: "sdk"`): each message to one is a question, which the host answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from hookline.errors import HooklineError

__all__ = ["AskHost", "host_streams"]

#: `await ask(server, message)`: hands a JSON-RPC message to the host; its JSON-RPC answer, or None
AskHost: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]

INTERNAL_ERROR = -32603


@contextlib.asynccontextmanager
async def host_streams(server: str, ask: AskHost) -> AsyncIterator[Any]:
    """A transport for the MCP SDK whose other end is the host; calls may overlap."""
    from mcp.shared.memory import create_client_server_memory_streams

    async with create_client_server_memory_streams() as (ours, (outgoing, incoming)):
        carrying = asyncio.create_task(_carry(server, ask, outgoing, incoming), name=f"mcp server {server} in the host")
        try:
            yield ours
        finally:
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)


async def _carry(server: str, ask: AskHost, outgoing: Any, incoming: Any) -> None:
    async with asyncio.TaskGroup() as calls:
        async for item in outgoing:
            message = item.message.model_dump(mode="json", by_alias=True, exclude_none=True)
            calls.create_task(_exchange(server, ask, message, incoming))


async def _exchange(server: str, ask: AskHost, message: dict[str, Any], incoming: Any) -> None:
    """One message over, one answer back; a notification gets none, and a host that cannot answer is an error."""
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    wants_answer = "id" in message and "method" in message
    try:
        answer = await ask(server, message)
        if not wants_answer:
            return
        parsed = jsonrpc_message_adapter.validate_python(answer)
    except (HooklineError, ValueError) as problem:
        if not wants_answer:
            return
        refusal = {"code": INTERNAL_ERROR, "message": f"the host gave no answer: {problem}"}
        parsed = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
    await incoming.send(SessionMessage(parsed))
