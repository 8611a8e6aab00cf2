"""Qwen Code: Claude Code's words, Gemini's tools, timeouts in milliseconds; nothing can be rewritten."""

from hookline.hosts.answer_shapes import (
    BLOCK,
    CLAUDE_EVENTS,
    EDIT,
    END_TURN,
    GLOB,
    GREP,
    READ,
    REQUEST_ALLOWED,
    REQUEST_DENIED,
    SYSTEM_MESSAGE,
    WRITE,
    context,
    permission,
    same,
)
from hookline.hosts.host import Config, Host, Tool

_PRE = "PreToolUse"

QWEN = Host(
    name="qwen",
    title="Qwen Code",
    verified="0.24.4",
    commands=("qwen",),
    events=same(*CLAUDE_EVENTS),
    says={
        _PRE: {"deny": permission(_PRE, "deny"), "ask": permission(_PRE, "ask"),
               "allow": permission(_PRE, "allow")},
        "PermissionRequest": {"deny": REQUEST_DENIED, "allow": REQUEST_ALLOWED},
        "PostToolUse": {"context": context("PostToolUse"), "deny": context("PostToolUse"), "stop": END_TURN},
        "UserPromptSubmit": {"deny": BLOCK, "context": context("UserPromptSubmit")},
        "Stop": {"keep_going": BLOCK},
        "SessionStart": {"context": context("SessionStart")},
    },
    message=SYSTEM_MESSAGE,
    tools={"run_shell_command": Tool("Bash", {"directory": "cwd"}), "write_file": WRITE, "edit": EDIT,
           "read_file": READ, "grep_search": GREP, "glob": GLOB, "notebook_edit": Tool("NotebookEdit"),
           "list_directory": Tool("LS"), "web_fetch": Tool("WebFetch"), "todo_write": Tool("TodoWrite"),
           "web_search": Tool("WebSearch"), "monitor": Tool("Bash", {"directory": "cwd"}), "agent": Tool("Agent"),
           "workflow": Tool("Agent"), "create_sub_session": Tool("Agent"), "skill": Tool("Skill"),
           "ask_user_question": Tool("AskUserQuestion")},
    other_tools=frozenset({
        "get_goal", "update_goal", "list_agents", "tool_call", "tool_search", "enter_plan_mode", "exit_plan_mode",
        "cron_create", "cron_delete", "cron_list", "loop_wakeup", "task_create", "task_list", "task_stop",
        "task_update", "team_create", "team_delete", "team_plan_approval", "request_shutdown", "send_message",
        "structured_output", "report_findings", "save_memory", "read_mcp_resource"}),
    config=Config(user=".qwen/settings.json", project=".qwen/settings.json", second=1000, named=True,
                  expands=True, longest=45),
    subagents=True,
    notes=(
        "it gives up on a hook after 60 s, whatever is configured, and runs the tool: Hookline denies before that",
        "UserPromptSubmit fires again, with an empty prompt, after every tool",
        "after 7 times in a row it stops although a hook sends it back to work",
    ),
)  # fmt: skip
