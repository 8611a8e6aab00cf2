"""OpenHands CLI: Claude Code's nesting, `decision: deny` in answers; a project's file replaces the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import Config, Host, ProofRecipe, ServerFile, Tool, mcp_name, nested
from hookline.hosts.shapes import BASH, DENY, GENERAL, READ_PATH, command_call, file_call, prompt_call, same

_EDIT = {"path": "file_path", "old_str": "old_string", "new_str": "new_string"}


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """It does not say which server a tool belongs to."""
    given = fields.get("tool_input")
    kind = given.get("kind") if isinstance(given, dict) else None
    return (mcp_name("unknown", name),) if kind == "MCPToolAction" else ()


_RISK = {"security_risk": "LOW", "summary": "x"}


OPENHANDS = Host(
    name="openhands",
    title="OpenHands",
    verified="1.16.0",
    events=same("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"),
    says={
        "PreToolUse": {"deny": DENY, "allow": {"decision": "allow"}},
        "UserPromptSubmit": {"deny": DENY},
        "Stop": {"keep_going": DENY},
    },
    event_field="event_type",
    names={"working_dir": "cwd", "message": "prompt"},
    tools={"terminal": BASH, "execute_bash": BASH,
           "file_editor": Tool("Edit", _EDIT, by="command", variants={
               "view": READ_PATH, "create": Tool("Write", {"path": "file_path", "file_text": "content"})}),
           "str_replace_editor": Tool("Edit", _EDIT, by="command", variants={"view": READ_PATH}),
           "apply_patch": Tool("Edit", patch="patch"), "task": Tool("Agent"), "delegate": Tool("Agent")},
    other_tools=frozenset({"finish", "think", "task_tracker"}),
    mcp=_mcp,
    mcp_input="data",
    tells_servers=False,
    servers=ServerFile(user=".openhands/mcp.json", marks={"transport": "stdio"}),
    config=Config(user=".openhands/hooks.json", project=".openhands/hooks.json", replaces=True, longest=390,
                  entry=lambda entry: {"matcher": "*", **nested(entry)}),
    subagents=False,
    notes=(
        "a project's `.openhands/hooks.json` is read instead of the user's; ours asks the user's hooks, too",
        "it does not say which MCP server a tool belongs to: match `mcp__.*__TOOL`",
        "what a hook says after a tool call is not read",
    ),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["--headless", "--json", "--always-approve", "--override-with-envs", "-t", prompt],
        env=lambda world: {"LLM_API_KEY": "none", "LLM_BASE_URL": f"{world.url}/v1", "LLM_MODEL": "openai/gpt-4.1",
                           "OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        bash=command_call("terminal", **_RISK),
        write=file_call("file_editor", "path", "file_text", command="create", **_RISK),
        copies=(".openhands/hooks.json",), project_copies=(".openhands/hooks.json",),
        ending=(("finish", {"message": "all done", "summary": "x"}),),
        spawn=prompt_call("task", **GENERAL, **_RISK)),
)  # fmt: skip
