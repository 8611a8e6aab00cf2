"""The hook system for AI agents: an event goes in, hooks answer, a verdict comes out.

`import hookline` loads nothing else: each name comes from the module that defines it when it is first used (PEP 562),
so that a command hook pays only for what it needs.
"""

TYPE_CHECKING = False  # type checkers take it for `typing.TYPE_CHECKING`, whose import would double the start-up time
if TYPE_CHECKING:
    from hookline.api import Hooks
    from hookline.core.engine import Context, Outcome, Verdict
    from hookline.core.hooks import AgentCheck, Cedar, Command, Hook, Http, McpTool, Prompt, Rego, hook
    from hookline.errors import HooklineError, ToolDenied
    from hookline.events import Event, HookEvent
    from hookline.records.approvals import Inbox
    from hookline.replies import (
        Decision,
        HookAnswer,
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

__version__ = "0.1.0"
__all__ = [
    "AgentCheck", "Cedar", "Command", "Context", "Decision", "Event", "Hook", "HookAnswer", "HookEvent",
    "HooklineError", "Hooks", "Http", "Inbox", "McpTool", "Outcome", "Prompt", "Rego", "Reply", "ToolDenied", "Verdict",
    "allow", "ask", "background", "context", "defer", "deny", "hook", "keep_going", "message", "replace_output",
    "rewrite", "specific", "stop",
]  # fmt: skip

_MODULES = {
    "hookline.core.engine": ("Context", "Outcome", "Verdict"),
    "hookline.errors": ("HooklineError", "ToolDenied"),
    "hookline.events": ("Event", "HookEvent"),
    "hookline.core.hooks": ("AgentCheck", "Cedar", "Command", "Hook", "Http", "McpTool", "Prompt", "Rego", "hook"),
    "hookline.api": ("Hooks",),
    "hookline.records.approvals": ("Inbox",),
    "hookline.replies": ("Decision", "HookAnswer", "Reply", "allow", "ask", "background", "context", "defer", "deny",
                         "keep_going", "message", "replace_output", "rewrite", "specific", "stop"),
}  # fmt: skip
"""Where each public name is defined."""
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __dir__() -> list[str]:
    """Every public name, imported or not."""
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # for a type checker, a name that is not listed above does not exist

    def __getattr__(name):  # noqa: ANN001, ANN202
        """Import a public name, or a module of the package, when it is first asked for; it is kept."""
        if name in _HOME:
            globals()[name] = value = getattr(__import__(_HOME[name], fromlist=(name,)), name)
            return value
        module = f"{__name__}.{name}"
        try:
            if not name.startswith("_"):
                return __import__(module, fromlist=(name,))
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


del TYPE_CHECKING
