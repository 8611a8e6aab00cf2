"""What to run, and when."""

from hookline.core.hooks.declare import declared, hook, make_hook
from hookline.core.hooks.hook import (
    Action,
    AgentCheck,
    Cedar,
    Command,
    Function,
    Hook,
    HookLike,
    Http,
    Matcher,
    McpTool,
    Prompt,
    Rego,
    parse_matcher,
)

__all__ = [
    "Action", "AgentCheck", "Cedar", "Command", "Function", "Hook", "HookLike", "Http", "Matcher", "McpTool", "Prompt",
    "Rego", "declared", "hook", "make_hook", "parse_matcher",
]  # fmt: skip
