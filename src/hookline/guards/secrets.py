"""Credentials in tool inputs, prompts and tool outputs: stopped, or taken out."""

from __future__ import annotations

from typing import Any

from hookline.core.hooks import Hook, make_hook
from hookline.events import Event, PostToolUse, PreToolUse, UserPromptSubmit
from hookline.guards import detect
from hookline.replies import Reply, deny, replace_output, rewrite

PRIORITY = 95


def block(*, inputs: bool = True, prompts: bool = True, outputs: bool = True) -> list[Hook]:
    """Deny tool calls and prompts that carry a credential; take credentials out of what tools return."""
    hooks = []
    if inputs:
        hooks.append(make_hook((PreToolUse,), _deny_input, name="secrets.block", priority=PRIORITY))
    if prompts:
        hooks.append(make_hook((UserPromptSubmit,), _deny_prompt, name="secrets.block_prompts", priority=PRIORITY))
    if outputs:
        hooks.append(make_hook((PostToolUse,), _clean_output, name="secrets.redact_outputs", priority=PRIORITY))
    return hooks


def redact(*, inputs: bool = True, outputs: bool = True) -> list[Hook]:
    """Let calls go on with credentials replaced by `[redacted: …]`, in what tools are given and what they return."""
    hooks = []
    if inputs:
        hooks.append(make_hook((PreToolUse,), _clean_input, name="secrets.redact", priority=PRIORITY))
    if outputs:
        hooks.append(make_hook((PostToolUse,), _clean_output, name="secrets.redact_outputs", priority=PRIORITY))
    return hooks


async def _deny_input(event: PreToolUse) -> Reply | None:
    kinds = sorted(_kinds(event.tool_input))
    return deny(f"the input of `{event.tool_name}` carries a credential ({', '.join(kinds)})") if kinds else None


async def _deny_prompt(event: UserPromptSubmit) -> Reply | None:
    kinds = sorted(_kinds(event.prompt))
    return (
        deny(f"the prompt carries a credential ({', '.join(kinds)}); take it out and send it again") if kinds else None
    )


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
    if isinstance(value, dict):
        return set().union(*(_kinds(item) for pair in value.items() for item in pair)) if value else set()
    if isinstance(value, (list, tuple)):
        return set().union(*(_kinds(item) for item in value)) if value else set()
    return set()


def cleaned(value: Any) -> Any:
    """A JSON value with every credential in its texts replaced."""
    if isinstance(value, str):
        return detect.redact(value)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value
