"""Performing actions: each module is imported when the first hook of its kind runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hookline.core.hooks.hook import AgentCheck, Cedar, Command, Function, Http, McpTool, Prompt, Rego

if TYPE_CHECKING:
    from hookline.core.engine import Runner
    from hookline.runners.services import Services

RUNNERS: dict[type[Any], tuple[str, str]] = {
    Function: ("function", "FunctionRunner"),
    Command: ("command", "CommandRunner"),
    Http: ("http", "HttpRunner"),
    Prompt: ("prompt", "PromptRunner"),
    AgentCheck: ("prompt", "AgentRunner"),
    McpTool: ("prompt", "McpRunner"),
    Cedar: ("policies", "CedarRunner"),
    Rego: ("policies", "RegoRunner"),
}
"""Which class performs which action: action → (module, class)."""


def runner_for(kind: type[Any], services: Callable[[], Services]) -> Runner:
    """A runner for one kind of action; a class that needs something of its host takes `services`."""
    module, name = RUNNERS[kind]
    cls = getattr(import_module(f"hookline.runners.{module}"), name)
    made: Runner = cls(services) if getattr(cls, "wants_services", False) else cls()
    return made
