"""Claude Code: the words that the others borrowed, and more events than any of them."""

from __future__ import annotations

from typing import Any

from hookline.core.hooks.condition import CLAUDE_TOOLS
from hookline.core.wire.claude import reply_object
from hookline.events import CATALOG
from hookline.hosts import shapes
from hookline.hosts.host import Config, Host, ProofRecipe, ServerFile, hook

_PRE = "PreToolUse"


def _heard(event: str) -> dict[str, Any]:
    return {"deny": shapes.BLOCK, "context": shapes.context(event), "stop": shapes.END_TURN}


CLAUDE = Host(
    name="claude",
    title="Claude Code",
    verified="2.1.325",
    events=shapes.same(*CATALOG),
    says={
        _PRE: {**shapes.permissions(_PRE, "deny", "ask", "allow", "defer"), "rewrite": shapes.rewritten(_PRE),
               "context": shapes.context(_PRE), "stop": shapes.END_TURN},
        "PermissionRequest": {**shapes.REQUEST, "rewrite": {}},
        "PostToolUse": {**_heard("PostToolUse"),
                        "replace": shapes.specific("PostToolUse", updatedToolOutput=shapes.VALUE)},
        "PostToolUseFailure": _heard("PostToolUseFailure"),
        "UserPromptSubmit": _heard("UserPromptSubmit"),
        "UserPromptExpansion": {"deny": shapes.BLOCK, "context": shapes.context("UserPromptExpansion")},
        "Stop": {"keep_going": shapes.BLOCK, "stop": shapes.END_TURN},
        "SubagentStop": {"keep_going": shapes.BLOCK, "stop": shapes.END_TURN},
        "SessionStart": {"context": shapes.context("SessionStart")},
        "SubagentStart": {"context": shapes.context("SubagentStart")},
        **{event: {"deny": shapes.BLOCK} for event in ("PreCompact", "ConfigChange", "TaskCreated", "TaskCompleted")},
    },
    message=shapes.SYSTEM_MESSAGE,
    other_tools=frozenset(CLAUDE_TOOLS),
    body=reply_object,
    servers=ServerFile(user=".claude.json", project=".mcp.json", nested="projects", marks={"type": "stdio"},
                       beyond="connectors of claude.ai and servers of plugins have no entry"),
    config=Config(
        user=".claude/settings.json", project=".claude/settings.json", local=".claude/settings.local.json",
        home_env="CLAUDE_CONFIG_DIR", longest=590,
        entry=lambda entry: {"hooks": [{**hook(entry), **({"onFailure": "block"} if entry.gate else {})}]},
    ),
    subagents=True,
    notes=(
        "`disableAllHooks` in a project's `.claude/settings.json` turns hooks off: add `protect.own_files()`",
        "`onFailure: block` is written as a second line of defence",
        "after 8 times in a row it stops although a hook sends it back to work",
    ),
    own_rules=True,
    binaries=("cli/claude/node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude",),
    bundled="claude_agent_sdk/_bundled/claude",
    reports_version=True,
    proof=ProofRecipe(
        argv=lambda world, prompt: ["-p", prompt, "--allowedTools=Bash,Write,Read,Edit", "--model",
                                    "claude-sonnet-4-5"],
        env=lambda world: {"ANTHROPIC_BASE_URL": world.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
                           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
                           "CLAUDE_CONFIG_DIR": str(world.home / ".claude")},
        bash=shapes.command_call("Bash", description="x"), write=shapes.file_call("Write"),
        copies=(".claude/settings.json",), project_copies=(".claude/settings.json", ".claude/settings.local.json"),
        spawn=shapes.prompt_call("Agent", run_in_background=False, **shapes.GENERAL)),
)  # fmt: skip
