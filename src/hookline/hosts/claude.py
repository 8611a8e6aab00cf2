"""Claude Code: the words that the others borrowed, and more events than any of them."""

from __future__ import annotations

from typing import Any

from hookline.core.hooks.tools import CLAUDE_TOOLS
from hookline.core.wire.claude import reply_object
from hookline.events import CATALOG, Event
from hookline.hosts import answer_shapes as shapes
from hookline.hosts.host import VALUE, Config, ConfigFormat, HookEntry, Host, hook
from hookline.hosts.mcp_entries import ServerFile
from hookline.hosts.proof_recipe import GENERAL, ProofRecipe, World, command_call, file_call, prompt_call
from hookline.replies import Reply

_PRE = "PreToolUse"


def _body(reply: Reply, event: Event) -> dict[str, Any]:
    return reply_object(reply, event)


def _entry(entry: HookEntry) -> dict[str, Any]:
    return {"hooks": [{**hook(entry), **({"onFailure": "block"} if entry.gate else {})}]}


def _env(world: World) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": world.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CONFIG_DIR": str(world.home / ".claude")}  # fmt: skip


CLAUDE = Host(
    name="claude",
    title="Claude Code",
    verified="2.1.325",
    commands=("claude",),
    events=shapes.same(*CATALOG),
    says={
        _PRE: {"deny": shapes.permission(_PRE, "deny"), "ask": shapes.permission(_PRE, "ask"),
               "allow": shapes.permission(_PRE, "allow"),
               "defer": shapes.permission(_PRE, "defer"), "rewrite": shapes.rewritten(_PRE),
               "context": shapes.context(_PRE),
               "stop": shapes.END_TURN},
        "PermissionRequest": {"deny": shapes.REQUEST_DENIED, "allow": shapes.REQUEST_ALLOWED, "rewrite": {}},
        "PostToolUse": {"deny": shapes.BLOCK, "context": shapes.context("PostToolUse"), "stop": shapes.END_TURN,
                        "replace": shapes.specific("PostToolUse", updatedToolOutput=VALUE)},
        "PostToolUseFailure": {"deny": shapes.BLOCK, "context": shapes.context("PostToolUseFailure"),
                               "stop": shapes.END_TURN},
        "UserPromptSubmit": {"deny": shapes.BLOCK, "context": shapes.context("UserPromptSubmit"),
                             "stop": shapes.END_TURN},
        "UserPromptExpansion": {"deny": shapes.BLOCK, "context": shapes.context("UserPromptExpansion")},
        "Stop": {"keep_going": shapes.BLOCK, "stop": shapes.END_TURN},
        "SubagentStop": {"keep_going": shapes.BLOCK, "stop": shapes.END_TURN},
        "SessionStart": {"context": shapes.context("SessionStart")},
        "SubagentStart": {"context": shapes.context("SubagentStart")},
        "PreCompact": {"deny": shapes.BLOCK},
        "ConfigChange": {"deny": shapes.BLOCK},
        "TaskCreated": {"deny": shapes.BLOCK},
        "TaskCompleted": {"deny": shapes.BLOCK},
    },
    message=shapes.SYSTEM_MESSAGE,
    other_tools=frozenset(CLAUDE_TOOLS),
    body=_body,
    servers=ServerFile(user=".claude.json", project=".mcp.json", nested="projects", marks={"type": "stdio"},
                       beyond="connectors of claude.ai and servers of plugins have no entry"),
    config=Config(
        user=".claude/settings.json", project=".claude/settings.json", local=".claude/settings.local.json",
        home_env="CLAUDE_CONFIG_DIR", longest=590, format=ConfigFormat(entry=_entry),
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
        env=_env, bash=command_call("Bash", description="x"), write=file_call("Write"),
        copies=(".claude/settings.json",), project_copies=(".claude/settings.json", ".claude/settings.local.json"),
        spawn=prompt_call("Agent", run_in_background=False, **GENERAL)),
)  # fmt: skip
