"""Credentials in tool inputs, prompts and tool outputs: stopped, or taken out."""

from collections.abc import Callable
from typing import Any

from hookline.core.hooks import Hook, make_hook
from hookline.events import Event, PostToolUse, PreToolUse, UserPromptSubmit
from hookline.guards import detect
from hookline.replies import Reply, deny, replace_output, rewrite

PRIORITY = 95


def block(*, inputs: bool = True, prompts: bool = True, outputs: bool = True) -> list[Hook]:
    """Deny tool calls and prompts that carry a credential; take credentials out of what tools return."""
    hooks = [_hook(PreToolUse, _deny_input, "block")] if inputs else []
    hooks += [_hook(UserPromptSubmit, _deny_prompt, "block_prompts")] if prompts else []
    return hooks + ([_hook(PostToolUse, _clean_output, "redact_outputs")] if outputs else [])


def redact(*, inputs: bool = True, outputs: bool = True) -> list[Hook]:
    """Let calls go on with credentials replaced by `[redacted: …]`, in what tools are given and what they return."""
    hooks = [_hook(PreToolUse, _clean_input, "redact")] if inputs else []
    return hooks + ([_hook(PostToolUse, _clean_output, "redact_outputs")] if outputs else [])


def _hook(event: type[Event], judge: Callable[..., Any], name: str) -> Hook:
    return make_hook((event,), judge, name=f"secrets.{name}", priority=PRIORITY)


async def _deny_input(event: PreToolUse) -> Reply | None:
    kinds = sorted(_kinds(event.tool_input))
    return deny(f"the input of `{event.tool_name}` carries a credential ({', '.join(kinds)})") if kinds else None


async def _deny_prompt(event: UserPromptSubmit) -> Reply | None:
    kinds = sorted(_kinds(event.prompt))
    said = f"the prompt carries a credential ({', '.join(kinds)}); take it out and send it again"
    return deny(said) if kinds else None


async def _clean_input(event: PreToolUse) -> Reply | None:
    clean = cleaned(event.tool_input)
    return None if clean == event.tool_input else rewrite(clean)


async def _clean_output(event: Event) -> Reply | None:
    response = event.tool_response  # type: ignore[attr-defined]
    clean = cleaned(response)
    return None if clean == response else replace_output(clean)


def _kinds(value: Any) -> set[str]:
    if isinstance(value, str):
        return {place.kind for place in detect.find(value)}
    items = value.items() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return set().union(*map(_kinds, items))


def cleaned(value: Any) -> Any:
    """A JSON value with every credential in its texts replaced."""
    if isinstance(value, str):
        return detect.redact(value)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value
