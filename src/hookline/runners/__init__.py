"""Performing actions: each module is imported when the first hook of its kind runs.

Some need something of their host: a model that judges, an agent that looks for itself, MCP servers. `runners` may not
know the agent, so the agent (or `hookline fire`) hands these in as `hooks.services`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.core.hooks.hook import AgentCheck, Cedar, Command, Function, Http, McpTool, Prompt, Rego
from hookline.events import Event

if TYPE_CHECKING:
    from hookline.core.engine import Runner

ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}, "impossible": {"type": "boolean"}},
    "required": ["ok", "reason"],
    "additionalProperties": False,
}
"""What a model that judges is asked to answer."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something a model is asked about an event; on Stop it is asked with the whole conversation before it."""

    text: str
    event: Event
    model: str | None = None
    with_conversation: bool = False
    schema: Mapping[str, Any] = msgspec.field(default_factory=lambda: ANSWER_SCHEMA)


class McpResult(msgspec.Struct, frozen=True):
    """What an MCP tool returned, as text."""

    text: str
    is_error: bool = False


Judge = Callable[[Question], Awaitable[str]]
"""A model that answers one question in one request: its text; what goes wrong is raised."""
Inspector = Callable[[Question], Awaitable[Mapping[str, Any] | None]]
"""A small agent that may use tools before it answers: its structured answer, or `None` if it gave none."""
McpCaller = Callable[[str, str, Mapping[str, Any]], Awaitable[McpResult]]
"""Calls a tool of an MCP server of the session: server, tool, arguments; an unknown server is a `HookFailed`."""


class Services(msgspec.Struct):
    """What the host of a set of hooks can do for them."""

    judge: Judge | None = None
    inspector: Inspector | None = None
    mcp: McpCaller | None = None


def check_seal(action: Command | Cedar | Rego, cwd: str) -> Callable[[], None]:
    """Compare the files of a trusted hook right before they are used; what is returned does so once they were."""
    return (lambda: None) if action.seal is None else action.seal.check(action, cwd)


RUNNERS: dict[type[Any], tuple[str, str]] = {
    Function: ("function", "FunctionRunner"),
    Command: ("command", "CommandRunner"),
    Http: ("http", "HttpRunner"),
    Prompt: ("prompt", "ServiceRunner"),
    AgentCheck: ("prompt", "ServiceRunner"),
    McpTool: ("prompt", "ServiceRunner"),
    Cedar: ("policies", "CedarRunner"),
    Rego: ("policies", "RegoRunner"),
}
"""Which class performs which action: action → (module, class)."""


def runner_for(kind: type[Any], services: Callable[[], Services]) -> Runner:
    """A runner for one kind of action; a class that needs something of its host takes `services`."""
    module, name = RUNNERS[kind]
    cls = getattr(import_module(f"hookline.runners.{module}"), name)
    made: Runner = cls(services) if name == "ServiceRunner" else cls()
    return made
