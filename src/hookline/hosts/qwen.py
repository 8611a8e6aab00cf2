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
           "agent": Tool("Agent"), "skill": Tool("Skill")},
    config=Config(user=".qwen/settings.json", project=".qwen/settings.json", second=1000, named=True,
                  expands=True),
    notes=(
        "UserPromptSubmit fires again, with an empty prompt, after every tool",
        "after 7 times in a row it stops although a hook sends it back to work",
    ),
)  # fmt: skip
