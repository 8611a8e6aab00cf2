"""Mistral Vibe: three points to hook into, answers in snake case, and a `strict` switch that fails closed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import Config, FileEdit, HookEntry, Host, ProofRecipe, ServerFile, Tool, TrustedFolders, World
from hookline.hosts.shapes import BASH, DENY, EDIT, GREP, NAME, TEXT, VALUE, WRITE, command_call, file_call


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    found = re.fullmatch(r"mcp_([^.]+)\.(.+)", name)
    return (f"mcp__{found[1]}__{found[2]}",) if found else ()


def _entry(entry: HookEntry) -> dict[str, Any]:
    """Vibe drops a user's hook that a project's has the name of, so each command has a name of its own."""
    from zlib import crc32  # no answer needs it

    name = f"hookline-{entry.event}-{crc32(entry.command.encode()):08x}"
    row = {"name": name, "type": entry.event, "command": entry.command, "timeout": entry.timeout}
    return {**row, "strict": True} if entry.gate else row


def _edits(world: World) -> list[FileEdit]:
    provider = {"name": NAME, "api_base": f"{world.url}/v1", "api_key_env_var": "FAKE_KEY", "backend": "generic"}
    model = {"name": "fake-model", "provider": NAME, "alias": NAME}
    values: dict[tuple[str, ...], Any] = {("active_model",): NAME, ("enable_telemetry",): False,
                                          ("enable_update_checks",): False}  # fmt: skip
    return [FileEdit(".vibe/config.toml", values, {"providers": provider, "models": model})]


VIBE = Host(
    name="vibe",
    title="Mistral Vibe",
    verified="3.0.2",
    events={"pre_tool": "PreToolUse", "post_tool": "PostToolUse", "post_agent": "Stop"},
    says={
        "PreToolUse": {"deny": DENY, "allow": {"decision": "allow"},
                       "rewrite": {"hook_specific_output": {"tool_input": VALUE}}},
        "PostToolUse": {"deny": DENY, "replace": DENY, "stop": DENY,
                        "context": {"hook_specific_output": {"additional_context": TEXT}}},
        "Stop": {"keep_going": DENY},
    },
    message={"system_message": TEXT},
    names={"tool_call_id": "tool_use_id", "tool_output": "tool_response"},
    tools={"file_system.bash": BASH, "bash": BASH, "file_system.write_file": WRITE, "write_file": WRITE,
           "file_system.read_file": Tool("Read", {"path": "file_path"}), "file_system.grep": GREP, "grep": GREP,
           "file_system.search_replace": EDIT, "file_system.edit": EDIT, "edit": EDIT, "task": Tool("Agent"),
           "read_file": Tool("Read", {"path": "file_path"}), "skill": Tool("Skill", {"name": "skill"}),
           "web_fetch": Tool("WebFetch"), "web_search": Tool("WebSearch")},
    other_tools=frozenset({
        "run_typescript", "search_tool_functions", "wait", "todo", "vibe.todo", "unified_harness_scratchpad",
        "vibe.unified_harness_scratchpad", "ask_user_question"}),
    mcp=_mcp,
    servers=ServerFile(user=".vibe/config.toml", key="mcp_servers", kind="rows", marks={"transport": "stdio"}),
    config=Config(user=".vibe/hooks.toml", project=".vibe/hooks.toml", home_env="VIBE_HOME", longest=390,
                  kind="toml", entry=_entry),
    notes=(
        "a call that `run_typescript` makes is refused like any other, but the model is not told why",
        "prompts and sessions have no hooks",
        "after 3 times in a row it stops although a hook sends it back to work",
    ),
    distribution="mistral_vibe",
    proof=ProofRecipe(
        argv=lambda world, prompt: ["--auto-approve", "-p", prompt],
        env=lambda world: {"FAKE_KEY": "none", "VIBE_HOME": str(world.home / ".vibe")}, edits=_edits,
        bash=command_call("bash"), write=file_call("write_file", "path"),
        copies=(".vibe/config.toml", ".vibe/hooks.toml"), project_copies=(".vibe/hooks.toml",),
        trust=TrustedFolders(".vibe/trusted_folders.toml", "lists", ("trusted", "untrusted"), "trusted")),
)  # fmt: skip
