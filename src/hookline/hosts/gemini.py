"""Gemini CLI: its own event names, timeouts in milliseconds, `decision: deny` for everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts import shapes
from hookline.hosts.host import Config, Host, ProofRecipe, ServerFile, Tool, TrustedFolders, mcp_name
from hookline.hosts.shapes import VALUE


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    server = fields.get("mcp_context")
    return (mcp_name(server.get("server_name"), server.get("tool_name")),) if isinstance(server, dict) else ()


GEMINI = Host(
    name="gemini",
    title="Gemini CLI",
    verified="0.61.0",
    events={"BeforeTool": "PreToolUse", "AfterTool": "PostToolUse", "BeforeAgent": "UserPromptSubmit",
            "AfterAgent": "Stop", "SessionStart": "SessionStart", "SessionEnd": "SessionEnd",
            "PreCompress": "PreCompact", "Notification": "Notification"},
    says={
        "PreToolUse": {"deny": shapes.DENY, "allow": {"decision": "allow"},
                       "rewrite": shapes.specific("BeforeTool", tool_input=VALUE)},
        # a deny takes the place of the output: what the tool returned does not reach the model
        "PostToolUse": {"deny": shapes.DENY, "replace": shapes.DENY, "context": shapes.context("AfterTool"),
                        "stop": shapes.END_TURN},
        "UserPromptSubmit": {"deny": shapes.DENY, "context": shapes.context("BeforeAgent")},
        "Stop": {"keep_going": shapes.DENY, "stop": shapes.END_TURN},
        "SessionStart": {"context": shapes.context("SessionStart")},
    },
    unjudged=frozenset({"BeforeModel", "AfterModel", "BeforeToolSelection"}),
    message=shapes.SYSTEM_MESSAGE,
    names={"prompt_response": "last_assistant_message"},
    tools={"run_shell_command": Tool("Bash", {"dir_path": "cwd"}), "write_file": shapes.WRITE, "replace": shapes.EDIT,
           "read_file": Tool("Read"), "read_many_files": Tool("Read", {"include": "file_path"}, each="include"),
           "grep_search": Tool("Grep", {"dir_path": "path", "include_pattern": "glob"}),
           "search_file_content": Tool("Grep", {"dir_path": "path", "include": "glob"}),
           "glob": Tool("Glob", {"dir_path": "path"}), "list_directory": Tool("LS", {"dir_path": "path"}),
           "web_fetch": Tool("WebFetch"), "google_web_search": Tool("WebSearch"), "write_todos": Tool("TodoWrite"),
           "invoke_agent": Tool("Agent", {"agent_name": "subagent_type"}),
           "activate_skill": Tool("Skill", {"name": "skill"}), "ShellTool": shapes.BASH},
    other_tools=frozenset({
        "update_topic", "enter_plan_mode", "exit_plan_mode", "list_background_processes", "read_background_output",
        "ask_user", "complete_task", "get_internal_docs", "tracker_create_task", "tracker_update_task",
        "tracker_get_task", "tracker_list_tasks", "tracker_add_dependency", "tracker_visualize", "list_mcp_resources",
        "read_mcp_resource"}),
    mcp=_mcp,
    servers=ServerFile(user=".gemini/settings.json", project=".gemini/settings.json", url="httpUrl",
                       beyond="servers of extensions have no entry"),
    config=Config(user=".gemini/settings.json", project=".gemini/settings.json", second=1000, entry=shapes.named,
                  expands=True, longest=590),
    subagents=True,
    notes=(
        "`hooksConfig.enabled` in a project's `.gemini/settings.json` turns hooks off: add `protect.own_files()`",
        "after 16 times in a row it stops although a hook sends it back to work",
    ),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["-m", "gemini-2.5-flash", "--yolo", "-p", prompt],
        env=lambda world: {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": world.url,
                           "GEMINI_CLI_NO_RELAUNCH": "true"},
        edits=lambda world: shapes.quiet_settings(".gemini", "gemini-api-key"),
        bash=shapes.command_call("run_shell_command"), write=shapes.file_call("write_file"),
        copies=(".gemini/settings.json",), project_copies=(".gemini/settings.json",),
        spawn=shapes.prompt_call("invoke_agent", agent_name="generalist"),
        trust=TrustedFolders(".gemini/trustedFolders.json", "map", (), "TRUST_FOLDER",
                             settings=".gemini/settings.json")),
)  # fmt: skip
