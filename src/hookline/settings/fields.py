"""The keys of a hook entry, by kind of hook (`fields.json`): what is expected, and what a wrong value means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from hookline.core.hooks.hook import AgentCheck, Cedar, Command, Http, McpTool, Prompt, Rego
from hookline.events import spec_of


class KeySpec(NamedTuple):
    """One key: the test, what to call the right value, an example, and what a wrong one means.

    A wrong value: take the key's default, drop the whole entry (it cannot run as meant), or fail closed.
    """

    ok: Callable[[Any], bool]
    want: str
    write: str
    otherwise: Literal["default", "drop", "block"] = "default"


def _seconds(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < 10**9 and math.isfinite(value)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "text": lambda v: isinstance(v, str) and bool(v.strip()),
    "command": lambda v: _TESTS["text"](v) and "\0" not in v,
    "name": lambda v: _TESTS["text"](v) and len(v) <= 200,
    "texts": lambda v: isinstance(v, list) and all(isinstance(one, str) and "\0" not in one for one in v),
    "rules": lambda v: isinstance(v, str) or _TESTS["texts"](v),
    "object": lambda v: isinstance(v, dict),
    "text map": lambda v: isinstance(v, dict) and _TESTS["texts"](list(v.values())),
    "env": lambda v: _TESTS["text map"](v) and all(name and "=" not in name and "\0" not in name for name in v),
    "switch": lambda v: isinstance(v, bool),
    "seconds": _seconds,
    "integer": lambda v: type(v) is int,
}
_ROWS: dict[str, dict[str, list[Any]]] = msgspec.json.decode(Path(__file__).with_name("fields.json").read_bytes())


def _spec(test: Any, want: str, write: str, otherwise: Any = "default") -> KeySpec:
    ok = test.__contains__ if isinstance(test, list) else _TESTS[test]
    return KeySpec(ok, want, write, "drop" if otherwise == "required" else otherwise)


REQUIRED = {kind: tuple(key for key, row in rows.items() if "required" in row) for kind, rows in _ROWS.items()}
KINDS: dict[str, Mapping[str, KeySpec]] = {
    kind: {key: _spec(*row) for key, row in rows.items()} for kind, rows in _ROWS.items()
}
"""Keys by kind of hook."""
COMMON = KINDS.pop("common")  # keys of every kind of hook; `mode`, `name` and `priority` are Hookline's own
DIALECTS: tuple[str, ...] = tuple(_ROWS["command"]["dialect"][0])
_RUN: dict[str, tuple[type[Any], float]] = {
    "command": (Command, 600.0),
    "http": (Http, 600.0),
    "mcp_tool": (McpTool, 600.0),
    "prompt": (Prompt, 30.0),
    "agent": (AgentCheck, 60.0),
    "cedar": (Cedar, 10.0),
    "rego": (Rego, 10.0),
}
ACTIONS = {kind: action for kind, (action, _) in _RUN.items()}  # what each kind of hook becomes
DEFAULT_TIMEOUT = {kind: seconds for kind, (_, seconds) in _RUN.items()}
"""Seconds an entry may take that does not say, by kind."""
FAIL_CLOSED = frozenset({"cedar", "rego"})
"""Kinds that Claude Code does not have: an entry that does not say blocks when it fails."""
TELLTALE = {"command": "command", "url": "http", "prompt": "prompt", "server": "mcp_tool"}
"""The key that gives an entry's kind away when it does not say."""


def default_timeout(kind: str, event: str) -> float:
    """Seconds for an entry of Claude Code's settings that names none."""
    return min(DEFAULT_TIMEOUT[kind], spec_of(event).timeout)
