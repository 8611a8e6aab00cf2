"""Gemini CLI: its own event names, timeouts in milliseconds, `decision: deny` for everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts.answer_shapes import (
    BASH,
    DENY,
    EDIT,
    END_TURN,
    SYSTEM_MESSAGE,
    WRITE,
    context,
    specific,
)
from hookline.hosts.host import VALUE, Config, Host, Tool
from hookline.hosts.mcp_names import mcp_name


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    server = fields.get("mcp_context")
    return (mcp_name(server.get("server_name"), server.get("tool_name")),) if isinstance(server, dict) else ()


GEMINI = Host(
    name="gemini",
    title="Gemini CLI",
    verified="0.61.0",
    commands=("gemini",),
    events={"BeforeTool": "PreToolUse", "AfterTool": "PostToolUse", "BeforeAgent": "UserPromptSubmit",
            "AfterAgent": "Stop", "SessionStart": "SessionStart", "SessionEnd": "SessionEnd",
            "PreCompress": "PreCompact", "Notification": "Notification"},
    says={
        "PreToolUse": {"deny": DENY, "allow": {"decision": "allow"},
                       "rewrite": specific("BeforeTool", tool_input=VALUE)},
        # a deny takes the place of the output: what the tool returned does not reach the model
        "PostToolUse": {"deny": DENY, "replace": DENY, "context": context("AfterTool"), "stop": END_TURN},
        "UserPromptSubmit": {"deny": DENY, "context": context("BeforeAgent")},
        "Stop": {"keep_going": DENY, "stop": END_TURN},
        "SessionStart": {"context": context("SessionStart")},
    },
    unjudged=frozenset({"BeforeModel", "AfterModel", "BeforeToolSelection"}),
    message=SYSTEM_MESSAGE,
    names={"prompt_response": "last_assistant_message"},
    tools={"run_shell_command": Tool("Bash", {"dir_path": "cwd"}), "write_file": WRITE, "replace": EDIT,
           "read_file": Tool("Read"), "read_many_files": Tool("Read", {"include": "file_path"}, each="include"),
           "grep_search": Tool("Grep", {"dir_path": "path", "include_pattern": "glob"}),
           "search_file_content": Tool("Grep", {"dir_path": "path", "include": "glob"}),
           "glob": Tool("Glob", {"dir_path": "path"}), "list_directory": Tool("LS", {"dir_path": "path"}),
           "web_fetch": Tool("WebFetch"), "google_web_search": Tool("WebSearch"), "write_todos": Tool("TodoWrite"),
           "invoke_agent": Tool("Agent", {"agent_name": "subagent_type"}),
           "activate_skill": Tool("Skill", {"name": "skill"}), "ShellTool": BASH},
    other_tools=frozenset({
        "update_topic", "enter_plan_mode", "exit_plan_mode", "list_background_processes", "read_background_output",
        "ask_user", "complete_task", "get_internal_docs", "tracker_create_task", "tracker_update_task",
        "tracker_get_task", "tracker_list_tasks", "tracker_add_dependency", "tracker_visualize", "list_mcp_resources",
        "read_mcp_resource"}),
    mcp=_mcp,
    config=Config(user=".gemini/settings.json", project=".gemini/settings.json", second=1000, named=True,
                  expands=True, longest=590),
    subagents=True,
    notes=("after 16 times in a row it stops although a hook sends it back to work",),
)  # fmt: skip
