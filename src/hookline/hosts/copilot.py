"""Copilot CLI: with PascalCase event names it sends and obeys what Claude Code does, mostly."""

from __future__ import annotations

from typing import Any

from hookline.events import Event, UserPromptSubmit
from hookline.hosts import shapes
from hookline.hosts.host import Config, Host, ProofRecipe, ServerFile, Tool, TrustedFolders

_PRE = "PreToolUse"
_FILE = {"path": "file_path", "file_text": "content"}
_SEARCH = Tool("Grep", {"paths": "path"}, each="paths")
_GLOB = Tool("Glob", {"paths": "path"}, each="paths")
_AGENT = Tool("Agent", {"agent_type": "subagent_type"})
_EDIT = {"path": "file_path", "old_str": "old_string", "new_str": "new_string"}


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """PermissionRequest alone calls its name `hookName`, whatever the configuration says."""
    if "hookName" in payload:
        payload.setdefault("hook_event_name", payload.pop("hookName"))
    return payload


def _with_prompt(text: str, event: Event | None) -> dict[str, Any]:
    """Context goes into the prompt itself: that is the only thing of a prompt's answer that the model reads."""
    prompt = event.prompt if isinstance(event, UserPromptSubmit) else ""
    return {"modifiedPrompt": f"{prompt}\n\n{text}"}


COPILOT = Host(
    name="copilot",
    title="Copilot CLI",
    verified="1.0.102",
    events=shapes.same(_PRE, "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionStart",
                       "SessionEnd"),
    aliases={"preToolUse": _PRE, "postToolUse": "PostToolUse", "userPromptSubmitted": "UserPromptSubmit",
             "agentStop": "Stop", "sessionStart": "SessionStart", "sessionEnd": "SessionEnd",
             "permissionRequest": "PermissionRequest", "PermissionRequest": "PermissionRequest"},
    says={
        _PRE: {**shapes.permissions(_PRE, "deny", "ask", "allow"),
               "rewrite": shapes.rewritten(_PRE, permissionDecision="allow"), "context": shapes.context(_PRE)},
        "PostToolUse": {"deny": shapes.BLOCK, "context": {"additionalContext": shapes.TEXT}, "stop": shapes.BLOCK,
                        "replace": {"modifiedResult": {"textResultForLlm": shapes.TEXT, "resultType": "success"}}},
        "UserPromptSubmit": {"deny": shapes.BLOCK, "context": _with_prompt},
        "Stop": {"keep_going": shapes.BLOCK},
        "SessionStart": {"context": {"additionalContext": shapes.TEXT}},
    },
    names={"sessionId": "session_id", "toolName": "tool_name", "toolArgs": "tool_input", "toolInput": "tool_input",
           "tool_result": "tool_response", "toolResult": "tool_response",
           "transcriptPath": "transcript_path", "permissionSuggestions": "permission_suggestions"},
    unwrap=_unwrap,
    tools={"Bash": shapes.BASH, "bash": shapes.BASH, "Write": Tool("Write", _FILE), "create": Tool("Write", _FILE),
           "Edit": Tool("Edit", _EDIT), "edit": Tool("Edit", _EDIT), "Read": Tool("Read", {"path": "file_path"}),
           "view": Tool("Read", {"path": "file_path"}), "Grep": _SEARCH, "grep": _SEARCH, "rg": _SEARCH,
           "Glob": _GLOB, "glob": _GLOB, "apply_patch": Tool("Edit", patch="input"), "task": _AGENT, "Task": _AGENT,
           "Agent": _AGENT, "skill": Tool("Skill"), "Skill": Tool("Skill"), "web_fetch": Tool("WebFetch"),
           "WebFetch": Tool("WebFetch"), "write_bash": Tool("Bash", {"input": "command"})},
    other_tools=frozenset({
        "read_bash", "stop_bash", "list_bash", "read_agent", "write_agent", "list_agents", "sql", "session_store_sql",
        "fetch_copilot_cli_documentation", "report_intent", "ask_user", "update_todo"}),
    mcp=shapes.joined_by("-"),
    servers=ServerFile(user=".copilot/mcp-config.json", project=".mcp.json", marks={"type": "local"},
                       beyond="the built-in GitHub server has no entry"),
    config=Config(user=".copilot/hooks/hookline.json", project=".github/hooks/hookline.json", home_env="COPILOT_HOME",
                  version=1, own_file=True, longest=590,
                  entry=lambda entry: {"type": "command", "bash": entry.command, "timeoutSec": entry.timeout}),
    subagents=True,
    notes=(
        "a project's hooks load under `-p` only in a trusted folder",
        "a blocked prompt ends the CLI with exit code 1",
        "after 8 times in a row it stops although a hook sends it back to work",
    ),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["--allow-all-tools", "--no-auto-update", "-p", prompt],
        env=lambda world: {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{world.url}/v1",
                           "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "fake-model",
                           "COPILOT_HOME": str(world.home / ".copilot"),
                           "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
                           "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "8000"},
        bash=shapes.command_call("bash", description="x"), write=shapes.file_call("create", "path", "file_text"),
        copies=(".copilot/hooks",), project_copies=(".github/hooks",),
        spawn=shapes.prompt_call("task", name="x", description="x", agent_type="general-purpose", mode="sync"),
        trust=TrustedFolders(".copilot/config.json", "lists", ("trusted_folders", "trustedFolders"),
                             "trusted_folders")),
)  # fmt: skip
