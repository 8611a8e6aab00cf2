"""Codex: Claude Code's nesting in a file of its own; hooks that were not trusted are skipped without a word."""

from hookline.hosts import answer_shapes as shapes
from hookline.hosts.host import Config, Host, Tool

_PRE = "PreToolUse"
_SHELL = Tool("Bash", command_line="command")
_AGENT = Tool("Agent", {"message": "prompt"})

CODEX = Host(
    name="codex",
    title="Codex",
    verified="0.166.0",
    commands=("codex",),
    events=shapes.same(_PRE, "PermissionRequest", "PostToolUse", "SessionStart", "SessionEnd", "UserPromptSubmit",
                "SubagentStart", "SubagentStop", "Stop", "PreCompact", "PostCompact"),
    says={
        _PRE: {
            "deny": shapes.permission(_PRE, "deny"),
            "rewrite": shapes.rewritten(_PRE, permissionDecision="allow"),  # without the allow it is ignored
            "context": shapes.context(_PRE),
        },
        "PermissionRequest": {"deny": shapes.REQUEST_DENIED, "allow": shapes.REQUEST_ALLOWED},
        # a block takes the place of the output: what the tool returned does not reach the model
        "PostToolUse": {"deny": shapes.BLOCK, "replace": shapes.BLOCK, "context": shapes.context("PostToolUse"),
                        "stop": shapes.BLOCK},
        "UserPromptSubmit": {"deny": shapes.BLOCK, "context": shapes.context("UserPromptSubmit")},
        "Stop": {"keep_going": shapes.BLOCK, "stop": shapes.END_TURN},
        "SubagentStop": {"keep_going": shapes.BLOCK},
        "SessionStart": {"context": shapes.context("SessionStart")},
    },
    message=shapes.SYSTEM_MESSAGE,
    tools={"Bash": _SHELL, "shell": _SHELL, "shell_command": _SHELL, "local_shell": _SHELL,
           "exec_command": Tool("Bash", {"cmd": "command", "workdir": "cwd"}, command_line="cmd"),
           "write_stdin": Tool("Bash", {"chars": "command"}, command_line="chars"),
           "apply_patch": Tool("Edit", patch="command"), "view_image": Tool("Read", {"path": "file_path"}),
           "spawn_agent": _AGENT, "collaborationspawn_agent": _AGENT, "web_search": Tool("WebSearch")},
    other_tools=frozenset({
        "exec", "wait", "tool_search", "update_plan", "request_user_input", "request_user_input_async", "sleep",
        "get_goal", "create_goal", "update_goal", "close_agent", "resume_agent", "send_input", "wait_agent",
        "followup_task", "interrupt_agent", "list_agents", "send_message"}),
    roams=True,
    config=Config(user=".codex/hooks.json", project=".codex/hooks.json", home_env="CODEX_HOME", longest=590,
                  cut_to={"SessionEnd": 3}),
    subagents=True,
    notes=(
        "`features.hooks` in a project's `.codex/config.toml` turns hooks off: add `protect.own_files()`",
        "a hook runs only once its hash is trusted; in `codex exec` an untrusted one is skipped without a word",
        "what is typed into a running program (`write_stdin`) is shown to no hook: refuse lines that start a shell",
        "the timeout of SessionEnd hooks is cut to 3 s",
        "nothing limits how often a hook may send the agent back to work",
    ),
)  # fmt: skip
