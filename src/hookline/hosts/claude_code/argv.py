"""The client's options as the CLI's flags: one row each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

Path = str | os.PathLike[str]
Flags = Callable[[str, Any], list[str]]

BASE = ("-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json")


class Options(Struct, frozen=True, kw_only=True):
    """How to start the CLI; what is left out is the CLI's own default. `extra_args` go last, as they are."""

    model: str | None = None
    fallback_model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    permission_prompt_tool: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    tools: Sequence[str] | None = None
    allowed_tools: Sequence[str] = ()
    disallowed_tools: Sequence[str] = ()
    max_turns: int | None = None
    max_budget_usd: float | None = None
    settings: str | Mapping[str, Any] | None = None
    setting_sources: Sequence[str] | None = None
    mcp_servers: Mapping[str, Any] | None = None
    strict_mcp_config: bool = False
    agents: Mapping[str, Any] | None = None
    plugin_dirs: Sequence[Path] = ()
    add_dirs: Sequence[Path] = ()
    json_schema: Mapping[str, Any] | None = None
    resume: str | None = None
    continue_conversation: bool = False
    fork_session: bool = False
    session_id: str | None = None
    include_partial_messages: bool = False
    include_hook_events: bool = False
    extra_args: Sequence[str] = ()


def _json(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _one(flag: str, value: Any) -> list[str]:
    return [flag, str(value)]


def _joined_flag(flag: str, value: Any) -> list[str]:
    """`--flag=value`: for values that may be empty or begin with a dash."""
    return [f"{flag}={value}"]


def _switch(flag: str, value: Any) -> list[str]:
    return [flag]


def _commas(flag: str, value: Any) -> list[str]:
    return [f"{flag}={','.join(value)}"]


def _each(flag: str, value: Any) -> list[str]:
    return [word for one in value for word in (flag, os.fspath(one))]


def _object(flag: str, value: Any) -> list[str]:
    return [flag, _json(value)]


def _servers(flag: str, value: Any) -> list[str]:
    return [flag, _json({"mcpServers": value})]


FLAGS: Mapping[str, tuple[str, Flags]] = {
    "model": ("--model", _one),
    "fallback_model": ("--fallback-model", _one),
    "effort": ("--effort", _one),
    "permission_mode": ("--permission-mode", _one),
    "permission_prompt_tool": ("--permission-prompt-tool", _one),
    "system_prompt": ("--system-prompt", _joined_flag),
    "append_system_prompt": ("--append-system-prompt", _joined_flag),
    "tools": ("--tools", _commas),
    "allowed_tools": ("--allowedTools", _commas),
    "disallowed_tools": ("--disallowedTools", _commas),
    "max_turns": ("--max-turns", _one),
    "max_budget_usd": ("--max-budget-usd", _one),
    "settings": ("--settings", _object),
    "setting_sources": ("--setting-sources", _commas),
    "mcp_servers": ("--mcp-config", _servers),
    "strict_mcp_config": ("--strict-mcp-config", _switch),
    "agents": ("--agents", _object),
    "plugin_dirs": ("--plugin-dir", _each),
    "add_dirs": ("--add-dir", _each),
    "json_schema": ("--json-schema", _object),
    "resume": ("--resume", _joined_flag),
    "continue_conversation": ("--continue", _switch),
    "fork_session": ("--fork-session", _switch),
    "session_id": ("--session-id", _joined_flag),
    "include_partial_messages": ("--include-partial-messages", _switch),
    "include_hook_events": ("--include-hook-events", _switch),
}
_UNSAID = Options()


def argv(command: Sequence[str], options: Options) -> list[str]:
    """The whole command line."""
    words = [*command, *BASE]
    for name, (flag, words_of) in FLAGS.items():
        value = getattr(options, name)
        if value != getattr(_UNSAID, name):
            words += words_of(flag, value)
    return [*words, *options.extra_args]
