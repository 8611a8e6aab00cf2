"""The hook system for AI agents: an event goes in, hooks answer, a verdict comes out."""

from hookline.engine import Context, Outcome, Verdict
from hookline.errors import HooklineError, ToolDenied
from hookline.events import Event, HookEvent
from hookline.hooks import AgentCheck, Command, Hook, Http, McpTool, Prompt, hook
from hookline.hookset import Hooks
from hookline.replies import (
    Decision,
    Reply,
    allow,
    ask,
    background,
    context,
    defer,
    deny,
    keep_going,
    message,
    replace_output,
    rewrite,
    specific,
    stop,
)

__all__ = [
    "AgentCheck",
    "Command",
    "Context",
    "Decision",
    "Event",
    "Hook",
    "HookEvent",
    "HooklineError",
    "Hooks",
    "Http",
    "McpTool",
    "Outcome",
    "Prompt",
    "Reply",
    "ToolDenied",
    "Verdict",
    "allow",
    "ask",
    "background",
    "context",
    "defer",
    "deny",
    "hook",
    "keep_going",
    "message",
    "replace_output",
    "rewrite",
    "specific",
    "stop",
]
