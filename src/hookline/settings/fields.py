"""The keys of a hook entry, as one table per kind of hook: what is expected, and what a wrong value means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from hookline.core.hooks.hook import AgentCheck, Cedar, Command, Http, McpTool, Prompt, Rego
from hookline.events import spec_of

Otherwise = Literal["default", "drop", "block"]
"""A wrong value: take the key's default, drop the whole entry (it cannot run as meant), or fail closed."""


class KeySpec(NamedTuple):
    """One key: the test, what to call the right value, an example, and what a wrong one means."""

    ok: Callable[[Any], bool]
    want: str
    write: str
    otherwise: Otherwise = "default"


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _seconds(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < 10**9 and math.isfinite(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and "\0" not in one for one in value)


def _text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) and "\0" not in one for one in value.values())


def _env_map(value: Any) -> bool:
    return _text_map(value) and all(name and "=" not in name and "\0" not in name for name in value)


DIALECTS = ("claude", "spec", "snake", "message")

_COMMAND = KeySpec(lambda v: _text(v) and "\0" not in v, "a command", '"./check.sh"', "drop")
_PROMPT = KeySpec(_text, "a question for the model", '"Is this safe? $ARGUMENTS"', "drop")
_SWITCH = KeySpec(lambda v: isinstance(v, bool), "true or false", "true")
_NAME = KeySpec(lambda v: _text(v) and len(v) <= 200, "a name", '"no-secrets"')
_MODEL = KeySpec(_text, "the name of a model", '"haiku"')

COMMON: Mapping[str, KeySpec] = {
    "if": KeySpec(lambda v: isinstance(v, str) or _texts(v), "a rule or a list of rules", '"Bash(git *)"'),
    "timeout": KeySpec(_seconds, "seconds", "30"),
    "statusMessage": KeySpec(lambda v: isinstance(v, str), "a text", '"Checking…"'),
    "once": _SWITCH,
    "onFailure": KeySpec(lambda v: v in ("continue", "block"), '`"continue"` or `"block"`', '"block"', "block"),
    "mode": KeySpec(lambda v: v in ("enforce", "evaluate_only"), '`"enforce"` or `"evaluate_only"`', '"evaluate_only"'),
    "name": _NAME,
    "priority": KeySpec(lambda v: type(v) is int, "a whole number", "10"),
}
"""Keys of every kind of hook; `mode`, `name` and `priority` are Hookline's own."""

KINDS: Mapping[str, Mapping[str, KeySpec]] = {
    "command": {
        "command": _COMMAND,
        "args": KeySpec(_texts, "a list of texts", '["--strict"]', "drop"),
        "shell": KeySpec(lambda v: v in ("bash", "powershell"), '`"bash"` or `"powershell"`', '"bash"'),
        "async": _SWITCH,
        "asyncRewake": _SWITCH,
        "rewakeMessage": KeySpec(_text, "a text", '"The tests in the background failed:"'),
        "rewakeSummary": KeySpec(_text, "a text", '"Background tests failed"'),
        "persistent": _SWITCH,
        "env": KeySpec(_env_map, "an object of texts", '{"LEVEL": "2"}', "drop"),
        "dialect": KeySpec(lambda v: v in DIALECTS, "one of `claude`, `spec`, `snake`, `message`", '"claude"', "drop"),
    },
    "prompt": {"prompt": _PROMPT, "model": _MODEL, "continueOnBlock": _SWITCH},
    "agent": {"prompt": _PROMPT, "model": _MODEL},
    "http": {
        "url": KeySpec(_text, "a URL", '"https://example.com/hook"', "drop"),
        "headers": KeySpec(_text_map, "an object of texts", '{"Authorization": "Bearer $TOKEN"}', "drop"),
        "allowedEnvVars": KeySpec(_texts, "a list of names", '["TOKEN"]'),
        "body": KeySpec(lambda v: isinstance(v, dict), "an object", '{"text": "${tool_name} was called"}', "drop"),
    },
    "mcp_tool": {
        "server": KeySpec(_text, "the name of an MCP server", '"db"', "drop"),
        "tool": KeySpec(_text, "the name of its tool", '"check"', "drop"),
        "input": KeySpec(lambda v: isinstance(v, dict), "an object", '{"path": "${tool_input.file_path}"}', "drop"),
    },
    "cedar": {
        "policies": KeySpec(_text, "a pattern of files", '"policies/*.cedar"', "drop"),
        "entities": KeySpec(_text, "a JSON file", '"policies/entities.json"', "drop"),
    },
    "rego": {"policies": KeySpec(_text, "a pattern of files", '"policies/*.rego"', "drop")},
}
"""Keys by kind of hook."""

ACTIONS: Mapping[str, type[Any]] = {
    "command": Command,
    "prompt": Prompt,
    "agent": AgentCheck,
    "http": Http,
    "mcp_tool": McpTool,
    "cedar": Cedar,
    "rego": Rego,
}
"""What each kind of hook becomes."""

REQUIRED = {
    "command": ("command",),
    "prompt": ("prompt",),
    "agent": ("prompt",),
    "http": ("url",),
    "mcp_tool": ("server", "tool"),
    "cedar": ("policies",),
    "rego": ("policies",),
}
FAIL_CLOSED = frozenset({"cedar", "rego"})
"""Kinds that Claude Code does not have: an entry that does not say blocks when it fails."""

TELLTALE = {"command": "command", "url": "http", "prompt": "prompt", "server": "mcp_tool"}
"""The key that gives an entry's kind away when it does not say."""

DEFAULT_TIMEOUT = {
    "command": 600.0,
    "http": 600.0,
    "mcp_tool": 600.0,
    "prompt": 30.0,
    "agent": 60.0,
    "cedar": 10.0,
    "rego": 10.0,
}
"""Seconds an entry may take that does not say, by kind."""


def default_timeout(kind: str, event: str) -> float:
    """Seconds for an entry of Claude Code's settings that names none."""
    return min(DEFAULT_TIMEOUT[kind], spec_of(event).timeout)
