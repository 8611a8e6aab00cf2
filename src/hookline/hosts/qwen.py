"""Qwen Code: Claude Code's words, Gemini's tools, timeouts in milliseconds; nothing can be rewritten."""

from hookline.hosts import shapes
from hookline.hosts.host import Config, Host, ProofRecipe, ServerFile, Tool, TrustedFolders

_PRE = "PreToolUse"

QWEN = Host(
    name="qwen",
    title="Qwen Code",
    verified="0.24.4",
    events=shapes.same(*shapes.COMMON_EVENTS),
    says={
        _PRE: shapes.permissions(_PRE, "deny", "ask", "allow"),
        "PermissionRequest": shapes.REQUEST,
        "PostToolUse": {"context": shapes.context("PostToolUse"), "deny": shapes.context("PostToolUse"),
                        "stop": shapes.END_TURN},
        "UserPromptSubmit": {"deny": shapes.BLOCK, "context": shapes.context("UserPromptSubmit")},
        "Stop": {"keep_going": shapes.BLOCK},
        "SessionStart": {"context": shapes.context("SessionStart")},
    },
    message=shapes.SYSTEM_MESSAGE,
    tools={"run_shell_command": Tool("Bash", {"directory": "cwd"}), "write_file": shapes.WRITE, "edit": shapes.EDIT,
           "read_file": shapes.READ, "grep_search": shapes.GREP, "glob": shapes.GLOB,
           "notebook_edit": Tool("NotebookEdit"),
           "list_directory": Tool("LS"), "web_fetch": Tool("WebFetch"), "todo_write": Tool("TodoWrite"),
           "web_search": Tool("WebSearch"), "monitor": Tool("Bash", {"directory": "cwd"}), "agent": Tool("Agent"),
           "workflow": Tool("Agent"), "create_sub_session": Tool("Agent"), "skill": Tool("Skill"),
           "ask_user_question": Tool("AskUserQuestion")},
    other_tools=frozenset({
        "get_goal", "update_goal", "list_agents", "tool_call", "tool_search", "enter_plan_mode", "exit_plan_mode",
        "cron_create", "cron_delete", "cron_list", "loop_wakeup", "task_create", "task_list", "task_stop",
        "task_update", "team_create", "team_delete", "team_plan_approval", "request_shutdown", "send_message",
        "structured_output", "report_findings", "save_memory", "read_mcp_resource"}),
    servers=ServerFile(user=".qwen/settings.json", project=".qwen/settings.json", url="httpUrl",
                       beyond="servers of extensions have no entry"),
    config=Config(user=".qwen/settings.json", project=".qwen/settings.json", second=1000, entry=shapes.named,
                  expands=True, longest=45),
    subagents=True,
    notes=(
        "`disableAllHooks` in a project's `.qwen/settings.json` turns hooks off: add `protect.own_files()`",
        "it gives up on a hook after 60 s, whatever is configured, and runs the tool: Hookline denies before that",
        "UserPromptSubmit fires again, with an empty prompt, after every tool",
        "after 7 times in a row it stops although a hook sends it back to work",
    ),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["-m", "fake-model", "--yolo", "-p", prompt],
        env=lambda world: {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{world.url}/v1",
                           "OPENAI_MODEL": "fake-model"},
        edits=lambda world: shapes.quiet_settings(".qwen", "openai"),
        bash=shapes.command_call("run_shell_command", is_background=False, description="x"),
        write=shapes.file_call("write_file"), copies=(".qwen/settings.json",), project_copies=(".qwen/settings.json",),
        spawn=shapes.prompt_call("agent", run_in_background=False, **shapes.GENERAL),
        trust=TrustedFolders(".qwen/trustedFolders.json", "map", (), "TRUST_FOLDER",
                                     settings=".qwen/settings.json", on=False)),
)  # fmt: skip
