"""A tool of an MCP server answers (FACTS.md §8): its text is read as a command's stdout would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.hook import Hook, McpTool
from hookline.core.placeholders import DOTTED, fill, in_every_text
from hookline.core.wire import claude
from hookline.core.wire.json_text import read_object
from hookline.core.wire.strict import check_object, check_text
from hookline.errors import HookFailed, ReplyError
from hookline.events import Event
from hookline.runners.services import ServiceRunner, missing


class McpRunner(ServiceRunner):
    """Calls the tool through the session's own connection to the server."""

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Call the tool; a tool error or an unknown server is a failure."""
        action = hook.action
        assert isinstance(action, McpTool)
        call = self._services().mcp
        if call is None:
            raise missing("MCP servers", "mcp")
        arguments = filled(action.input, claude.event_object(event))
        result = await call(action.server, action.tool, arguments)
        if result.is_error:
            raise HookFailed(
                f"asked tool `{action.tool}` of `{action.server}`, which failed: {result.text}", stdout=result.text
            )
        return RunnerResult(reply=_reply(result.text, hook, event), stdout=result.text)


def _reply(text: str, hook: Hook, event: Event) -> Any:
    """JSON is an answer; plain text says nothing, as FACTS.md §8 has it; what only looks like JSON is a failure."""
    trimmed, strict = text.strip(), hook.fails_closed(event)
    try:
        if not trimmed.startswith("{"):
            return check_text(trimmed, event.event_name) if strict else None
        if strict:
            check_object(read_object(trimmed) or {}, event.event_name)
        return claude.decode_reply(trimmed, event)
    except ReplyError as problem:
        raise HookFailed(str(problem), stdout=text) from None


def filled(value: Any, event: Mapping[str, Any]) -> Any:
    """`value` with every `${path.to.field}` replaced from the event; an unknown path becomes nothing."""
    return in_every_text(value, lambda text: fill(text, lambda path: _looked_up(event, path), DOTTED))


def _looked_up(event: Mapping[str, Any], path: str) -> str:
    found: Any = event
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if found is None:
        return ""
    return found if isinstance(found, str) else claude.encoded(found)
