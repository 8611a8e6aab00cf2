"""Hooks around every call of the official Python client of MCP: `guard(session, hooks)`."""

from typing import TYPE_CHECKING, Any, TypeVar

from hookline.core.engine.composition import OnAsk
from hookline.core.engine.engine import Fires
from hookline.frameworks.loops import ajudge
from hookline.frameworks.steps import UNSET, plain
from hookline.hosts.host import mcp_name

if TYPE_CHECKING:
    from mcp import ClientSession

S = TypeVar("S", bound="ClientSession")


def guard(session: S, hooks: Fires, *, server: str, on_ask: OnAsk | None = None) -> S:
    """The session, each of whose tool calls is PreToolUse and PostToolUse of `mcp__SERVER__TOOL` from now on.

    A denied call is not sent: its result is an error that says why. For clients in other languages, and for pins, put
    `hookline mcp` in front of the server instead.
    """
    from mcp import types

    call_tool = session.call_tool

    async def judged_call(name: str, arguments: dict[str, Any] | None = None, *args: Any, **options: Any) -> Any:
        call = await ajudge(hooks, {"name": mcp_name(server, name), "arguments": arguments or {}}, on_ask=on_ask)
        if call.refused is not None:
            return types.CallToolResult(content=[types.TextContent(type="text", text=call.refused)], is_error=True)
        try:
            result = await call_tool(name, plain(call.arguments), *args, **options)
        except Exception as problem:
            await call.afail(problem)
            raise
        if not isinstance(result, types.CallToolResult):
            return result  # the server asks for input first; the call that brings it is judged again
        if result.is_error:
            texts = [text for block in result.content if isinstance(text := getattr(block, "text", None), str)]
            told = await call.failed("\n".join(texts))
        else:
            blocks = plain(result.content) if result.structured_content is None else result.structured_content
            told = await call.succeeded(blocks)
        notes = [types.TextContent(type="text", text=note) for note in told.notes]
        if told.output is UNSET:
            return result.model_copy(update={"content": [*result.content, *notes]}) if notes else result
        replaced = types.TextContent(type="text", text=told.text(None))
        structured = told.output if isinstance(told.output, dict) else None
        return result.model_copy(update={"content": [replaced], "structured_content": structured})

    session.call_tool = judged_call  # type: ignore[method-assign]
    return session
