"""Grok: Claude Code's words; it also reads Claude Code's and Cursor's hook files, so an event may arrive twice."""

from __future__ import annotations

from typing import Any

from hookline.errors import EventError
from hookline.hosts import shapes
from hookline.hosts.host import Config, FileEdit, Host, ProofRecipe, ServerFile, Tool, TrustedFolders
from hookline.hosts.shapes import joined_by

_PRE = "PreToolUse"


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """Refuse a call of which only the beginning is there."""
    if payload.get("toolInputTruncated"):
        raise EventError("Grok: the call is too long and arrived cut; what is missing cannot be judged")
    return payload


GROK = Host(
    name="grok",
    title="Grok",
    verified="1.0.41",
    events=shapes.same(*shapes.COMMON_EVENTS),
    says={
        _PRE: {**shapes.permissions(_PRE, "deny"), "rewrite": shapes.rewritten(_PRE, permissionDecision="allow"),
               "context": shapes.context(_PRE)},
        "PostToolUse": {"deny": shapes.BLOCK, "context": shapes.context("PostToolUse"), "stop": shapes.BLOCK},
        "UserPromptSubmit": {"deny": shapes.BLOCK},
        "Stop": {"keep_going": shapes.BLOCK},
    },
    message=shapes.SYSTEM_MESSAGE,
    unwrap=_unwrap,
    tools={"run_terminal_command": Tool("Bash"), "monitor": Tool("Bash"), "write": shapes.WRITE,
           "search_replace": shapes.EDIT,
           "read_file": Tool("Read", {"target_file": "file_path"}), "grep": shapes.GREP,
           "list_dir": Tool("LS", {"target_directory": "path"}), "web_search": Tool("WebSearch"),
           "todo_write": Tool("TodoWrite"), "spawn_subagent": Tool("Agent"), "workflow": Tool("Agent"),
           "apply_patch": Tool("Edit", patch="patch"), "ask_user_question": Tool("AskUserQuestion")},
    other_tools=frozenset({
        "enter_plan_mode", "exit_plan_mode", "get_command_or_subagent_output", "kill_command_or_subagent",
        "scheduler_create", "scheduler_delete", "scheduler_list", "search_tool", "use_tool", "send_feedback",
        "image_gen", "image_edit", "image_to_video", "reference_to_video"}),
    mcp=joined_by("__"),
    mcp_input="tool_input",
    servers=ServerFile(user=".grok/config.toml", key="mcp_servers", kind="toml",
                       beyond="servers in Claude Code's files are read as well: run `hookline install claude --mcp`"),
    config=Config(user=".grok/hooks/hookline.json", project=".grok/hooks/hookline.json", own_file=True,
                  expands=True, longest=590),
    subagents=True,
    notes=(
        "a project's hooks run only in a git repository that was trusted: start `grok --trust` there once",
        "it also runs the hooks of `~/.claude/settings.json` and `~/.cursor/hooks.json`",
        "long inputs arrive cut (`toolInputTruncated`); such a call is denied, as the rest of it is not known",
        "after the last turn it fires Stop once more, with the reason `shutdown`",
        "after 8 times in a row it stops although a hook sends it back to work",
    ),
    borrows=("claude", "cursor"),
    recognize=lambda payload: "hookEventName" in payload and "workspaceRoot" in payload,
    proof=ProofRecipe(
        argv=lambda world, prompt: ["-m", shapes.NAME, "--always-approve", "-p", prompt],
        env=lambda world: {"XAI_API_KEY": "none"},
        edits=lambda world: [FileEdit(".grok/config.toml", {("model", shapes.NAME): {
            "model": "fake-model", "base_url": f"{world.url}/v1", "name": shapes.NAME, "api_key": "none"}})],
        bash=shapes.command_call("run_terminal_command", description="x"), write=shapes.file_call("write"),
        copies=(".grok/hooks", ".grok/config.toml", ".claude/settings.json", ".cursor/hooks.json"),
        project_copies=(".grok/hooks",), spawn=shapes.prompt_call("spawn_subagent", description="x", background=False),
        trust=TrustedFolders(".grok/trusted_folders.toml", "table", ("folders", "trusted"), trusted=True,
                             inherits=False)),
)  # fmt: skip
