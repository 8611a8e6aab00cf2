"""Performing actions: one module per kind, imported when the first hook of its kind runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hookline.hooks.actions import AgentCheck, Command, Function, Http, McpTool, Prompt

if TYPE_CHECKING:
    from hookline.engine import Engine, Runner

RUNNERS: dict[type[Any], tuple[str, str]] = {
    Function: ("function", "FunctionRunner"),
    Command: ("command", "CommandRunner"),
    Http: ("http", "HttpRunner"),
    Prompt: ("prompt", "PromptRunner"),
    AgentCheck: ("agent", "AgentRunner"),
    McpTool: ("mcp", "McpRunner"),
}
"""Which class performs which action: action → (module, class)."""


def runner_for(engine: Engine, kind: type[Any]) -> Runner:
    """A runner for one kind of action; a class that wants its engine takes it as `engine=`."""
    module, name = RUNNERS[kind]
    cls = getattr(import_module(f"hookline.runners.{module}"), name)
    made: Runner = cls(engine=engine) if getattr(cls, "wants_engine", False) else cls()
    return made
