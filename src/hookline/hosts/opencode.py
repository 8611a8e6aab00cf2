"""opencode: a plugin in JavaScript, which asks Hookline and throws what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.hosts.answer_shapes import GLOB
from hookline.hosts.host import TEXT, VALUE, Config, Host, Tool
from hookline.hosts.mcp_names import mcp_name

_PATH = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """A plugin's hook gets `input` and `output`; what is to be judged is in one or the other."""
    given, made = payload.pop("input", None), payload.pop("output", None)
    given, made = given if isinstance(given, dict) else {}, made if isinstance(made, dict) else {}
    found = {
        "session_id": given.get("sessionID"),
        "tool_name": given.get("tool"),
        "tool_use_id": given.get("callID"),
        "tool_input": given.get("args") or made.get("args"),
        "tool_response": made.get("output"),
        "prompt": _prompt(made.get("parts")),
        "mcp_servers": payload.pop("servers", None),
    }
    return {**payload, **{name: value for name, value in found.items() if value is not None}}


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """A tool's name begins with its server's, signs replaced; the plugin knows the servers."""
    given = fields.get("mcp_servers")
    servers = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    starts = [(server, re.sub(r"[^a-zA-Z0-9_-]", "_", server) + "_") for server in servers]
    return tuple(mcp_name(server, name.removeprefix(start)) for server, start in starts if name.startswith(start))


def _prompt(parts: Any) -> str | None:
    if not isinstance(parts, list):
        return None
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


OPENCODE = Host(
    name="opencode",
    title="opencode",
    verified="1.18.33",
    commands=("opencode",),
    events={"tool.execute.before": "PreToolUse", "tool.execute.after": "PostToolUse",
            "chat.message": "UserPromptSubmit"},
    says={
        "PreToolUse": {"deny": {"deny": TEXT}, "rewrite": {"args": VALUE}},
        "PostToolUse": {"deny": {"append": TEXT}, "context": {"append": TEXT}, "replace": {"output": TEXT}},
        "UserPromptSubmit": {"deny": {"deny": TEXT}, "context": {"append": TEXT}},
    },
    event_field="hook",
    unwrap=_unwrap,
    unjudged=frozenset({"INIT", "system.transform", "messages.transform", "text.complete", "chat.params",
                        "chat.headers", "tool.definition", "shell.env", "permission.ask", "compacting",
                        "command.execute.before"}),
    mcp=_mcp,
    tools={"bash": Tool("Bash", {"workdir": "cwd"}), "write": Tool("Write", _PATH), "edit": Tool("Edit", _PATH),
           "read": Tool("Read", _PATH), "grep": Tool("Grep", {"include": "glob"}), "glob": GLOB,
           "list": Tool("LS"), "webfetch": Tool("WebFetch"),
           "apply_patch": Tool("Edit", patch="patchText"), "patch": Tool("Edit", patch="patchText"),
           "task": Tool("Agent"), "todowrite": Tool("TodoWrite"), "skill": Tool("Skill", {"name": "skill"}),
           "websearch": Tool("WebSearch"), "question": Tool("AskUserQuestion")},
    other_tools=frozenset({"invalid", "plan_exit", "todoread"}),
    config=Config(user=".config/opencode/plugin/hookline.js", project=".opencode/plugin/hookline.js",
                  home_env="XDG_CONFIG_HOME", shape="plugin", own_file=True, longest=490),
    subagents=True,
    notes=(
        "there is no timeout of its own: the plugin waits for Hookline, which always answers",
        "a refused prompt ends the run with exit code 1",
    ),
)  # fmt: skip
