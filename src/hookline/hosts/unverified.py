"""Hosts that could not be run here: their rows repeat documentation or source, and say so wherever they appear."""

from __future__ import annotations

from typing import Any

from hookline.hosts import shapes
from hookline.hosts.host import Config, Exit, Host, Plain, Tool
from hookline.hosts.shapes import TEXT, VALUE

_PRE = "PreToolUse"
_BORROWED = {
    _PRE: {**shapes.permissions(_PRE, "deny", "ask", "allow"), "rewrite": shapes.rewritten(_PRE)},
    "PostToolUse": {"deny": shapes.BLOCK, "context": shapes.context("PostToolUse")},
    "UserPromptSubmit": {"deny": shapes.BLOCK},
    "Stop": {"keep_going": shapes.BLOCK},
    "SessionStart": {"context": shapes.context("SessionStart")},
}  # fmt: skip
"""The answers of hosts that took over Claude Code's words."""


def _cursor(payload: dict[str, Any]) -> dict[str, Any]:
    roots = payload.get("workspace_roots")
    if isinstance(roots, list) and roots:
        payload.setdefault("cwd", roots[0])
    return payload


CURSOR = Host(
    name="cursor",
    title="Cursor",
    command="cursor-agent",
    events={"preToolUse": _PRE, "postToolUse": "PostToolUse", "beforeSubmitPrompt": "UserPromptSubmit",
            "stop": "Stop", "sessionStart": "SessionStart", "sessionEnd": "SessionEnd", "preCompact": "PreCompact",
            "subagentStart": "SubagentStart", "subagentStop": "SubagentStop"},
    says={
        _PRE: {"deny": {"permission": "deny", "user_message": TEXT, "agent_message": TEXT},
               "ask": {"permission": "ask", "user_message": TEXT}, "allow": {"permission": "allow"},
               "rewrite": {"permission": "allow", "updated_input": VALUE}},
        "PostToolUse": {"context": {"additional_context": TEXT}},
        "UserPromptSubmit": {"deny": {"continue": False, "user_message": TEXT}},
        "Stop": {"keep_going": {"followup_message": TEXT}},
        "SessionStart": {"context": {"additional_context": TEXT}},
    },
    names={"conversation_id": "session_id", "tool_output": "tool_response"},
    unwrap=_cursor,
    tools={"Shell": Tool("Bash", {"working_directory": "cwd"}), "Write": Tool("Write", {"path": "file_path"}),
           "StrReplace": Tool("Edit", {"path": "file_path"}), "Read": shapes.READ_PATH,
           "Delete": Tool("Edit", {"path": "file_path"}), "Grep": shapes.GREP, "Glob": shapes.GLOB},
    config=Config(user=".cursor/hooks.json", project=".cursor/hooks.json",
                  version=1,
                  entry=lambda entry: {**shapes.flat(entry), **({"failClosed": True} if entry.gate else {})}),
    notes=("`failClosed` is written as a second line of defence",),
)  # fmt: skip

_ACTIONS = {"run_command": ("Bash", {"command_line": "command"}), "write_code": ("Write", {}),
            "read_code": ("Read", {}), "mcp_tool_use": ("", {})}  # fmt: skip


def _windsurf(payload: dict[str, Any]) -> dict[str, Any]:
    """The action's name says which tool it is; `tool_info` is its input."""
    action = str(payload.get("agent_action_name", ""))
    found = payload.pop("tool_info", None)
    info: dict[str, Any] = found if isinstance(found, dict) else {}
    payload["hook_event_name"] = action
    if "prompt" in action:
        return {**payload, "prompt": info.get("user_prompt")}
    name, fields = _ACTIONS.get(action.partition("_")[2], ("", {}))
    given = {fields.get(key, key): value for key, value in info.items()}
    tool = name or f"mcp__{info.get('mcp_server_name')}__{info.get('mcp_tool_name')}"
    return {**payload, "tool_name": tool, "tool_input": given, "cwd": info.get("cwd")}


WINDSURF = Host(
    name="windsurf",
    title="Windsurf",
    events={"pre_run_command": _PRE, "pre_write_code": _PRE, "pre_read_code": _PRE, "pre_mcp_tool_use": _PRE,
            "post_run_command": "PostToolUse", "post_write_code": "PostToolUse", "post_read_code": "PostToolUse",
            "post_mcp_tool_use": "PostToolUse", "pre_user_prompt": "UserPromptSubmit",
            "post_cascade_response": "Stop"},
    says={_PRE: {"deny": Exit(2)}, "UserPromptSubmit": {"deny": Exit(2)}},
    names={"trajectory_id": "session_id"},
    unwrap=_windsurf,
    config=Config(user=".codeium/windsurf/hooks.json", project=".windsurf/hooks.json",
                  entry=lambda entry: {"command": entry.command}),
)  # fmt: skip

CRUSH = Host(
    name="crush",
    title="Crush",
    events=shapes.same(_PRE),
    says={_PRE: {"deny": {"decision": "deny", "reason": TEXT}, "allow": {"decision": "allow"},
                 "rewrite": {"decision": "allow", "updated_input": VALUE}, "context": {"context": TEXT}}},
    event_field="event",
    tools={"bash": Tool("Bash", {"working_dir": "cwd"}), "write": shapes.WRITE, "edit": shapes.EDIT,
           "multiedit": Tool("MultiEdit"),
           "view": shapes.READ, "grep": shapes.GREP, "glob": shapes.GLOB, "ls": shapes.LIST, "fetch": shapes.FETCH},
    config=Config(user=".config/crush/crush.json", project="crush.json", home_env="XDG_CONFIG_HOME", entry=shapes.flat),
)  # fmt: skip

GOOSE = Host(
    name="goose",
    title="goose",
    events=shapes.same(_PRE, "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd", "PreCompact",
                "SubagentStart", "SubagentStop"),
    says={_PRE: {"deny": shapes.BLOCK}, "UserPromptSubmit": {"deny": shapes.BLOCK},
          "Stop": {"keep_going": shapes.BLOCK}},
    tools={"developer__shell": shapes.BASH, "shell": shapes.BASH,
           "developer__text_editor": Tool("Edit", {"path": "file_path", "old_str": "old_string",
                                                   "new_str": "new_string", "file_text": "content"})},
    config=Config(user=".config/goose/plugins/hookline/hooks/hooks.json", home_env="XDG_CONFIG_HOME", own_file=True),
)  # fmt: skip


KIRO = Host(
    name="kiro",
    title="Kiro",
    command="kiro-cli",
    events=shapes.same(_PRE, "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart"),
    aliases={"preToolUse": _PRE, "postToolUse": "PostToolUse", "userPromptSubmit": "UserPromptSubmit",
             "stop": "Stop", "agentSpawn": "SessionStart"},
    says={_PRE: {"deny": Exit(2)}, "UserPromptSubmit": {"deny": Exit(2), "context": Plain()},
          "SessionStart": {"context": Plain()}},
    tools={"execute_bash": shapes.BASH, "shell": shapes.BASH,
           "fs_write": Tool("Write", {"path": "file_path", "file_text": "content"}),
           "str_replace": Tool("Edit", {"path": "file_path"}), "fs_read": shapes.READ_PATH},
    config=Config(user=".kiro/hooks/hookline.json", project=".kiro/hooks/hookline.json", own_file=True,
                  version="v1", listed=True,
                  entry=lambda entry: {"name": f"hookline-{entry.event}", "trigger": entry.event,
                                       "action": {"type": "command", "command": entry.command},
                                       "timeout": entry.timeout, "enabled": True}),
)  # fmt: skip

AUGMENT = Host(
    name="augment",
    title="Augment",
    command="auggie",
    events={**shapes.same(_PRE, "PostToolUse", "Stop", "SessionStart", "SessionEnd"),
            "PromptSubmit": "UserPromptSubmit"},
    says=_BORROWED,
    names={"conversation_id": "session_id", "tool_output": "tool_response"},
    tools={"launch-process": shapes.BASH, "save-file": Tool("Write", {"path": "file_path", "file_content": "content"}),
           "str-replace-editor": Tool("Edit", {"path": "file_path"}), "view": shapes.READ_PATH},
    config=Config(user=".augment/settings.json", project=".augment/settings.json", second=1000),
)  # fmt: skip

DROID = Host(
    name="droid",
    title="Factory droid",
    events=shapes.same(_PRE, "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "SessionStart", "SessionEnd",
                "PreCompact", "Notification"),
    says={**_BORROWED, "UserPromptSubmit": {"deny": shapes.BLOCK, "context": shapes.context("UserPromptSubmit")}},
    tools={"Execute": shapes.BASH, "Create": shapes.WRITE, "Edit": Tool("Edit", {"old_str": "old_string",
           "new_str": "new_string"}),
           "Read": shapes.READ, "Grep": shapes.GREP, "Glob": shapes.GLOB, "LS": shapes.LIST,
           "FetchUrl": shapes.FETCH,
           "ApplyPatch": Tool("Edit", patch="input")},
    config=Config(user=".factory/settings.json", project=".factory/settings.json"),
    notes=("its payloads were recorded in one run; its replies were not tried",),
)  # fmt: skip
