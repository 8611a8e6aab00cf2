"""What to run, and when."""

from hookline.core.hooks.declare import declared, hook, make_hook
from hookline.core.hooks.hook import AgentCheck, Cedar, Command, Function, Hook, Http, McpTool, Prompt, Rego

__all__ = [
    "AgentCheck", "Cedar", "Command", "Function", "Hook", "Http", "McpTool", "Prompt", "Rego", "declared", "hook",
    "make_hook",
]  # fmt: skip
