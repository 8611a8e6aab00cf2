"""The table of hosts: a row for each, and what data cannot say of a few of them. Pure."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from hookline.core.hooks.condition import CLAUDE_TOOLS
from hookline.core.wire.claude import reply_object
from hookline.errors import HooklineError, did_you_mean
from hookline.events import CATALOG
from hookline.hosts.host import HookTrust, Host, ProofRecipe, mcp_name, read_row


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


# Claude Code: the words that the others borrowed, and more events than any of them.
CLAUDE = read_row(
    "claude", events={name: name for name in CATALOG}, other_tools=frozenset(CLAUDE_TOOLS), body=reply_object
)


# Codex: Claude Code's nesting in a file of its own; hooks that were not trusted are skipped without a word.
# A rewrite is ignored without an allow beside it. After a tool call a block takes the place of the output: what the
# tool returned does not reach the model. For a proof the `profile` of the user's settings is left out: it would choose
# another model.
def _codex_hashes(file: str, content: Any, ours: Callable[[Any], bool]) -> dict[str, str]:
    """The key and hash of each of our entries in `hooks.json`, whatever else the file holds."""
    found = {}
    for event, groups in as_dict(as_dict(content).get("hooks")).items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            listed = as_dict(group).get("hooks")
            for index, hook in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(hook, dict) and ours(hook.get("command")):
                    found[f"{file}:{name}:{number}:{index}"] = _codex_hash(event, name, group.get("matcher"), hook)
    return found


def _codex_hash(event: str, name: str, matcher: str | None, hook: dict[str, Any]) -> str:
    """SHA-256 of the normalised definition, which the tests compare with what `codex app-server` says."""
    import hashlib  # no answer needs them
    import json

    timeout = hook.get("timeout")
    if not isinstance(timeout, int):  # an entry that was edited: none of our hashes fits it
        return ""
    timeout = min(timeout, 3) if event == "SessionEnd" else timeout  # which it cuts
    handler = {"type": "command", "command": hook["command"], "timeout": timeout, "async": False}
    definition = {"event_name": name, "hooks": [handler], **({} if matcher is None else {"matcher": matcher})}
    data = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


# Gemini CLI: its own event names, timeouts in milliseconds, `decision: deny` for everything.
# After a tool call a deny takes the place of the output: what the tool returned does not reach the model.
def _gemini_mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    server = fields.get("mcp_context")
    return (mcp_name(server.get("server_name"), server.get("tool_name")),) if isinstance(server, dict) else ()


# opencode: a plugin in JavaScript (`rows/opencode.js`), which asks Hookline and throws what it refuses.
# A proof gives it time: it installs its plugins' packages first.
def _opencode_mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """A tool's name begins with its server's, signs replaced; the plugin knows the servers."""
    given = fields.get("mcp_servers")
    servers = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    starts = [(server, re.sub(r"[^a-zA-Z0-9_-]", "_", server) + "_") for server in servers]
    return tuple(f"mcp__{server}__{name.removeprefix(start)}" for server, start in starts if name.startswith(start))


# OpenHands CLI: Claude Code's nesting, `decision: deny` in answers; a project's file replaces the user's.
def _openhands_mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """It does not say which server a tool belongs to."""
    return (mcp_name("unknown", name),) if as_dict(fields.get("tool_input")).get("kind") == "MCPToolAction" else ()


# Windsurf: an action for each tool, with the tool's input in `tool_info`.
def _unwrap_windsurf(payload: dict[str, Any]) -> dict[str, Any]:
    """The action's name says which tool it is; `tool_info` is its input."""
    action, info = str(payload.get("agent_action_name", "")), as_dict(payload.pop("tool_info", None))
    tool = action.partition("_")[2]
    if tool == "mcp_tool_use":
        tool = mcp_name(info.get("mcp_server_name"), info.get("mcp_tool_name"))
    call = {"tool_name": tool, "tool_input": info, "cwd": info.get("cwd")}
    more = {"prompt": info["user_prompt"]} if "user_prompt" in info else call
    return {**payload, "hook_event_name": action, **more}


_ROWS = (
    CLAUDE,
    read_row(
        "codex",
        hook_trust=HookTrust("config.toml", lambda key: ("hooks", "state", key, "trusted_hash"), _codex_hashes),
    ),
    read_row("gemini", mcp=_gemini_mcp),
    read_row("qwen"),
    read_row("copilot"),  # PermissionRequest alone calls its name `hookName`, whatever the configuration says
    read_row("kimi"),
    read_row("grok"),
    read_row("vibe"),
    read_row("openhands", mcp=_openhands_mcp),
    # `cancel` ends the whole run, and the model never learns why: a refused command becomes one that says so and fails.
    # The binary is named in the row, as its launcher leaves a daemon behind that the binary alone does not need.
    read_row("cline"),
    read_row("opencode", mcp=_opencode_mcp),
    read_row("cursor"),
    read_row("windsurf", unwrap=_unwrap_windsurf),
    *map(read_row, ("crush", "goose", "kiro", "augment", "droid")),
)

HOSTS: Mapping[str, Host] = MappingProxyType({host.name: host for host in _ROWS})
"""Every host by its name: first those that were measured, then those known from documentation only."""


AGENTS: Mapping[str, ProofRecipe] = MappingProxyType({host.name: host.proof for host in _ROWS if host.proof})
"""How to run each agent that a proof can be run on."""


def find(name: str) -> Host:
    """The host of that name; an unknown name is refused with the near ones."""
    try:
        return HOSTS[name]
    except KeyError:
        hint = did_you_mean(name, HOSTS) or f"; write one of {', '.join(HOSTS)}"
        raise HooklineError(f"no host `{name}`{hint}") from None
